"""Reads an event from one sentence, relative to now in the user's zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from annabelle.core.errors import InvalidArguments
from annabelle.servers.gmail.calendar.event import Span
from annabelle.servers.gmail.calendar.quick.clock import Hours, take_hours, take_length
from annabelle.servers.gmail.calendar.quick.cut import Cut
from annabelle.servers.gmail.calendar.quick.days import Day, take_days
from annabelle.servers.gmail.calendar.quick.elsewhere import take_foreign_day
from annabelle.servers.gmail.calendar.quick.repeating import take_rule
from annabelle.servers.gmail.calendar.when import later, local

_EXAMPLE = 'Write it like "Lunch with Ana tomorrow at 12:30" or "Holiday Dec 24".'
_PLACE = re.compile(r"(?:\bat|@)\s+(?P<place>[^\x1f]+?)(?=\s+(?:with|about|for|re)\b|\s*[\x1f,;]|\s*$)", re.IGNORECASE)
_PLAIN_PLACES = ("the ", "home", "work", "school", "office")


@dataclass(frozen=True, slots=True)
class QuickEvent:
    summary: str
    span: Span
    location: str = ""
    recurrence: tuple[str, ...] = ()


def read_sentence(sentence: str, now: datetime) -> QuickEvent:
    """`now` carries the user's zone. InvalidArguments when the sentence tells no time."""
    zone = now.tzinfo
    assert isinstance(zone, ZoneInfo)
    cut = Cut(sentence)
    length = take_length(cut)
    rule = take_rule(cut)
    days = take_days(cut, now)
    hours = take_hours(cut)
    if days is None:
        foreign = take_foreign_day(cut, now)
        days = (foreign, None) if foreign is not None else None
    if days is None and hours is None and rule is None:
        raise InvalidArguments("The sentence does not tell when.", hint=_EXAMPLE, field="text")
    try:
        span = _span(days, hours, length, now, zone, rule.first(now.date()) if rule is not None else None)
    except (OverflowError, ValueError) as error:
        raise InvalidArguments(
            "The sentence tells a time that is too far away.", hint=_EXAMPLE, field="text"
        ) from error
    location = _take_place(cut)
    summary = cut.rest()
    if not summary:
        raise InvalidArguments("The sentence does not tell what.", hint=_EXAMPLE, field="text")
    return QuickEvent(summary, span, location, (rule.line,) if rule is not None else ())


def _span(
    days: tuple[Day, Day | None] | None,
    hours: Hours | None,
    length: timedelta | None,
    now: datetime,
    zone: ZoneInfo,
    rule_day: date | None,
) -> Span:
    first, last = days if days is not None else (Day(rule_day or now.date(), lambda day: day + timedelta(days=1)), None)
    if first.moment is not None and hours is None:
        return Span(first.moment, later(first.moment, length or timedelta(hours=1)))
    if hours is None:
        day = first.next() if _over(first, now) else first.day
        return Span(day, _last_day(day, last, length) + timedelta(days=1))
    start = local(datetime.combine(first.day, hours.start), zone)
    if start.astimezone(UTC) < now.astimezone(UTC) and first.again is not None:
        start = local(datetime.combine(first.next(), hours.start), zone)
    if hours.end is not None:
        closing = last.day if last is not None and last.day > start.date() else start.date()
        return Span(start, _after(start, closing, hours.end, zone))
    if last is not None and last.day > start.date():
        # From one day to another, starting at an hour: it goes on until that day is over.
        return Span(start, local(datetime.combine(last.day + timedelta(days=1), time.min), zone))
    return Span(start, later(start, length or timedelta(hours=1)))


def _over(day: Day, now: datetime) -> bool:
    """Whether a whole day is meant for later: one that has passed, or the weekday that is today."""
    return day.again is not None and (day.day < now.date() or (day.not_today and day.day == now.date()))


def _last_day(first: date, last: Day | None, length: timedelta | None) -> date:
    if last is not None:
        day = last.day
        while day < first and last.again is not None:
            day = last.again(day)
        if day < first:
            raise InvalidArguments("The event would end before it starts.", hint=_EXAMPLE, field="text")
        return day
    return first + timedelta(days=max(0, (length or timedelta(days=1)).days - 1))


def _after(start: datetime, day: date, end: time, zone: ZoneInfo) -> datetime:
    """The end on this day, or on the next when the clock has gone past midnight."""
    moment = local(datetime.combine(day, end), zone)
    return (
        moment
        if moment.astimezone(UTC) > start.astimezone(UTC)
        else local(datetime.combine(day + timedelta(days=1), end), zone)
    )


def _take_place(cut: Cut) -> str:
    for match in cut.all(_PLACE):
        place = match["place"].strip()
        if place[:1].isupper() or place[:1].isdigit() or place.lower().startswith(_PLAIN_PLACES):
            cut.take(match)
            return place
    return ""
