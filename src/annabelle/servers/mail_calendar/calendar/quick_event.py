"""Reads an event from one sentence, relative to now in the user's time zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from annabelle.core.errors import InvalidArguments
from annabelle.servers.mail_calendar.calendar.event import EventSpan
from annabelle.servers.mail_calendar.calendar.quick_days import NamedDay, RemainingText, take_days, take_foreign_day
from annabelle.servers.mail_calendar.calendar.times import add_length, to_zone

_CLOCK_WORDS = {"noon": time(12), "midday": time(12), "midnight": time(0)}
_HALF = r"(?P<h{n}>\d{{1,2}})(?:(?:[:h]|\.(?=\d\d\s?(?:[ap]\.?m|uhr)))(?P<m{n}>\d{{2}}))?\s?(?P<p{n}>[ap]\.?m\b\.?)?"
_ONE = _HALF.format(n=1)
_TWO = _HALF.format(n=2)
_RANGE = re.compile(
    rf"(?<![\d\-/.])(?:\b(?P<lead>from|between|at|von|de|zwischen)\s+)?{_ONE}\s*(?:uhr\s*)?"
    rf"(?:-|–|—|\bto\b|\buntil\b|\btill\b|\band\b|\bbis\b)"
    rf"\s*{_TWO}(?:\s*uhr\b)?(?![\d\-/]|\.\d)",
    re.IGNORECASE,
)
_EXACT = re.compile(
    rf"(?<![\d\-/.:])(?:(?:\b(?:at|um|à|a\s+las?|om|kl|alle)\b|@)\s*)?"
    rf"(?:(?P<word>\b(?:noon|midday|midnight)\b)|{_ONE}(?P<clock>\s*(?:uhr|o'clock)\b)?)(?![\d\-/]|\.\d)",
    re.IGNORECASE,
)
_BARE = re.compile(r"(?:\bat|@)\s*(?P<h1>\d{1,2})(?![\d:./\-]|\s*[ap]\.?m)\b(?!\s+[A-Z])", re.IGNORECASE)
_LENGTH = re.compile(
    r"\bfor\s+(?P<number>\d+(?:[.,]\d+)?|an?|half\s+an?|one|two|three)\s*"
    r"(?P<unit>minutes?|mins?|hours?|hrs?|h|m|days?|weeks?)\b(?:\s+and\s+a\s+(?P<half>half))?",
    re.IGNORECASE,
)
_NUMBERS = {"a": 1.0, "an": 1.0, "one": 1.0, "two": 2.0, "three": 3.0}
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LONGEST = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class ClockHours:
    """When on a day it starts and, if that was said, when it ends."""

    start: time
    end: time | None = None


def take_hours(cut: RemainingText) -> ClockHours | None:
    """The first time of day that is clearly one: with minutes, with am or pm, or after "at"."""
    for match in cut.find_all(_RANGE):
        found = _read_range(match)
        if found is not None:
            cut.remove_match(match)
            return found
    for match in cut.find_all(_EXACT):
        if match["word"]:
            cut.remove_match(match)
            return ClockHours(_CLOCK_WORDS[match["word"].lower()])
        clear = match["m1"] is not None or match["p1"] is not None or match["clock"] is not None
        moment = _read_clock(match["h1"], match["m1"], match["p1"]) if clear else None
        if moment is not None:
            cut.remove_match(match)
            return ClockHours(moment)
    for match in cut.find_all(_BARE):
        moment = _read_clock(match["h1"], None, None)
        if moment is not None:
            cut.remove_match(match)
            # "at 5" is in the afternoon, "at 9" in the morning.
            return ClockHours(moment.replace(hour=moment.hour + 12) if 1 <= moment.hour <= 6 else moment)
    return None


def take_length(cut: RemainingText) -> timedelta | None:
    for match in cut.find_all(_LENGTH):
        number, unit = match["number"].lower(), match["unit"][0].lower()
        half = number.startswith("half")
        count = 0.5 if half else _NUMBERS[number] if number in _NUMBERS else float(number.replace(",", "."))
        length = _UNITS[unit] * min(count + (0.5 if match["half"] else 0), 10_000)
        if timedelta(0) < length <= _LONGEST:
            cut.remove_match(match)
            return length
    return None


def _read_range(match: re.Match[str]) -> ClockHours | None:
    """A range is one of hours only if something says so: "2-3 people" is none."""
    if not any(match[group] for group in ("lead", "m1", "p1", "m2", "p2")):
        return None
    # "9-10am" and "1-3pm": what is said of the end is meant for the start too, unless that would be after it.
    end = _read_clock(match["h2"], match["m2"], match["p2"])
    start = _read_clock(match["h1"], match["m1"], match["p1"] or match["p2"])
    if start is not None and end is not None and start > end and match["p1"] is None and match["p2"]:
        start = _read_clock(match["h1"], match["m1"], None)
    if start is None or end is None:
        return None
    twelve = match["p1"] is match["p2"] is None and end.hour < 12 and not match["h2"].startswith("0")
    if twelve and end < start < (evening := end.replace(hour=end.hour + 12)):
        end = evening  # "from 9 to 5", but not "22:00-2:00"
    return ClockHours(start, end)


def _read_clock(hour: str, minute: str | None, half: str | None) -> time | None:
    hours, minutes = int(hour), int(minute or 0)
    if half is not None:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if half.lower().startswith("p") else 0)
    return time(hours, minutes) if hours < 24 and minutes < 60 else None


_CODES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_REPEAT_WORDS = {"daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annually": "year"}
_FREQUENCIES = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
_RULE = re.compile(
    r"\bevery\s+(?P<unit>day|week|month|year|weekday|"
    r"(?P<weekday>mon|tue|wed|thu|fri|sat|sun)(?:day|sday|nesday|rsday|urday)?)s?\b"
    r"|\b(?P<word>daily|weekly|monthly|yearly|annually)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class RepeatRule:
    line: str
    days: frozenset[int] = frozenset()
    """Numbers of the weekdays it is on; empty when the first day decides."""

    def first_day(self, today: date) -> date:
        """The first day from today on that fits."""
        return next(
            day
            for day in (today + timedelta(days=ahead) for ahead in range(7))
            if not self.days or day.weekday() in self.days
        )


def take_rule(cut: RemainingText) -> RepeatRule | None:
    for match in cut.find_all(_RULE):
        cut.remove_match(match)
        if match["weekday"]:
            code = match["weekday"][:2].upper()
            return RepeatRule(f"RRULE:FREQ=WEEKLY;BYDAY={code}", frozenset({_CODES.index(code)}))
        unit = _REPEAT_WORDS[match["word"].lower()] if match["word"] else match["unit"].lower()
        if unit == "weekday":
            return RepeatRule("RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", frozenset(range(5)))
        return RepeatRule(f"RRULE:FREQ={_FREQUENCIES[unit]}")
    return None


_EXAMPLE = 'Write it like "Lunch with Ana tomorrow at 12:30" or "Holiday Dec 24".'
_PLACE = re.compile(r"(?:\bat|@)\s+(?P<place>[^\x1f]+?)(?=\s+(?:with|about|for|re)\b|\s*[\x1f,;]|\s*$)", re.IGNORECASE)
_PLAIN_PLACES = ("the ", "home", "work", "school", "office")


@dataclass(frozen=True, slots=True)
class QuickEvent:
    summary: str
    span: EventSpan
    location: str = ""
    recurrence: tuple[str, ...] = ()


def read_sentence(sentence: str, now: datetime) -> QuickEvent:
    """`now` carries the user's zone. InvalidArguments when the sentence tells no time."""
    zone = now.tzinfo
    assert isinstance(zone, ZoneInfo)
    cut = RemainingText(sentence)
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
        span = _build_span(days, hours, length, now, zone, rule.first_day(now.date()) if rule is not None else None)
    except (OverflowError, ValueError) as error:
        raise InvalidArguments(
            "The sentence tells a time that is too far away.", hint=_EXAMPLE, field="text"
        ) from error
    location = _take_place(cut)
    summary = cut.to_title()
    if not summary:
        raise InvalidArguments("The sentence does not tell what.", hint=_EXAMPLE, field="text")
    return QuickEvent(summary, span, location, (rule.line,) if rule is not None else ())


def _build_span(
    days: tuple[NamedDay, NamedDay | None] | None,
    hours: ClockHours | None,
    length: timedelta | None,
    now: datetime,
    zone: ZoneInfo,
    rule_day: date | None,
) -> EventSpan:
    first, last = (
        days if days is not None else (NamedDay(rule_day or now.date(), lambda day: day + timedelta(days=1)), None)
    )
    if first.moment is not None and hours is None:
        return EventSpan(first.moment, add_length(first.moment, length or timedelta(hours=1)))
    if hours is None:
        day = first.next_day() if _is_over(first, now) else first.day
        return EventSpan(day, _last_day(day, last, length) + timedelta(days=1))
    start = to_zone(datetime.combine(first.day, hours.start), zone)
    if start.astimezone(UTC) < now.astimezone(UTC) and first.again is not None:
        start = to_zone(datetime.combine(first.next_day(), hours.start), zone)
    if hours.end is not None:
        closing = last.day if last is not None and last.day > start.date() else start.date()
        return EventSpan(start, _end_after(start, closing, hours.end, zone))
    if last is not None and last.day > start.date():
        # From one day to another, starting at an hour: it goes on until that day is over.
        return EventSpan(start, to_zone(datetime.combine(last.day + timedelta(days=1), time.min), zone))
    return EventSpan(start, add_length(start, length or timedelta(hours=1)))


def _is_over(day: NamedDay, now: datetime) -> bool:
    """Whether a whole day is meant for later: one that has passed, or the weekday that is today."""
    return day.again is not None and (day.day < now.date() or (day.not_today and day.day == now.date()))


def _last_day(first: date, last: NamedDay | None, length: timedelta | None) -> date:
    if last is not None:
        day = last.day
        while day < first and last.again is not None:
            day = last.again(day)
        if day < first:
            raise InvalidArguments("The event would end before it starts.", hint=_EXAMPLE, field="text")
        return day
    return first + timedelta(days=max(0, (length or timedelta(days=1)).days - 1))


def _end_after(start: datetime, day: date, end: time, zone: ZoneInfo) -> datetime:
    """The end on this day, or on the next when the clock has gone past midnight."""
    moment = to_zone(datetime.combine(day, end), zone)
    return (
        moment
        if moment.astimezone(UTC) > start.astimezone(UTC)
        else to_zone(datetime.combine(day + timedelta(days=1), end), zone)
    )


def _take_place(cut: RemainingText) -> str:
    for match in cut.find_all(_PLACE):
        place = match["place"].strip()
        if place[:1].isupper() or place[:1].isdigit() or place.lower().startswith(_PLAIN_PLACES):
            cut.remove_match(match)
            return place
    return ""
