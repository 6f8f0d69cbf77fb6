"""Converts times in calls to moments with a zone.

A local time skipped in spring has the offset before the change, as in RFC 5545. Of a repeated one in autumn, the first
is taken.
"""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, date, datetime, time, timedelta
from typing import TypeVar

from annabelle.core.errors import InvalidArguments
from annabelle.language.spoken_dates import parse_in_any_language
from annabelle.servers.mail_calendar.calendar.event import DayOrTime, EventSpan, EventWindow

T = TypeVar("T", date, datetime)

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_WORD = re.compile(r"[^\W\d_]{3}")
"""A day or time in words has a word in it. "0D" and "5m" are a slip, not today."""
_EXAMPLE = "Write it like 2026-12-03T09:30, with +01:00 or Z at the end if it is not in the time zone of the event."
_DAY_EXAMPLE = "Write it like 2026-12-03."
_WINDOW = timedelta(days=30)
_LONGEST_WINDOW = timedelta(days=366 * 5)
_YEARS = range(1900, 2200)
"""In other years, a conversion could leave the range of datetime."""


def load_zone(name: str, field: str | None = "time_zone") -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidArguments(
            f"{name[:60]!r} is not a time zone.", hint="Use a name like Europe/Berlin.", field=field
        ) from error


def to_zone(moment: datetime, zone: zoneinfo.ZoneInfo) -> datetime:
    """Convert a moment. Without an offset it is wall clock time in the zone."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
    return aware.astimezone(UTC).astimezone(zone)


def midnight(day: date, zone: zoneinfo.ZoneInfo) -> datetime:
    return to_zone(datetime.combine(day, time.min), zone)


def to_utc(given: DayOrTime, zone: zoneinfo.ZoneInfo) -> datetime:
    """A moment, or the start of a day, in UTC, where moments compare correctly across clock changes."""
    return (given if isinstance(given, datetime) else midnight(given, zone)).astimezone(UTC)


def read_moment(text: str, zone: zoneinfo.ZoneInfo, field: str) -> datetime:
    if _DAY.fullmatch(text.strip()):
        hint = f"For a whole day use {field.removesuffix('_time')}. {_EXAMPLE}"
        raise InvalidArguments(f"{text[:60]!r} has no time of day.", hint=hint, field=field)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InvalidArguments(f"{text[:60]!r} is not a date with a time.", hint=_EXAMPLE, field=field) from error
    return to_zone(_check_year(moment, field), zone)


def read_day(text: str, field: str) -> date:
    if not _DAY.fullmatch(text.strip()):
        raise InvalidArguments(f"{text[:60]!r} is not a date.", hint=_DAY_EXAMPLE, field=field)
    try:
        return _check_year(date.fromisoformat(text.strip()), field)
    except ValueError as error:
        raise InvalidArguments(
            f"{text[:60]!r} is a day that does not exist.", hint=_DAY_EXAMPLE, field=field
        ) from error


def read_window(
    time_min: str | None, time_max: str | None, zone: zoneinfo.ZoneInfo, now: datetime, query: str = ""
) -> EventWindow:
    """Window of 30 days from now by default. A date means the whole day."""
    start = _read_edge(time_min, zone, "time_min", timedelta(0)) if time_min else now.astimezone(UTC)
    end = _read_edge(time_max, zone, "time_max", timedelta(days=1)) if time_max else start + _WINDOW
    if end <= start:
        raise InvalidArguments("That ends before it begins.", field="time_max")
    if end - start > _LONGEST_WINDOW:
        raise InvalidArguments("That is more than five years.", hint="Ask for a shorter time.", field="time_max")
    return EventWindow(start, end, query)


def read_span(
    zone: zoneinfo.ZoneInfo,
    *,
    start_date_time: str | None,
    start_date: str | None,
    end_date_time: str | None,
    end_date: str | None,
    before: EventSpan | None = None,
) -> EventSpan | None:
    """Span of an event, or None without a start. With `before`, a new start keeps the length, a new end the start."""
    start = _read_side("start", start_date_time, start_date, zone)
    end = _read_side("end", end_date_time, end_date, zone)
    if end is not None and not isinstance(end, datetime):
        end += timedelta(days=1)
    if start is None:
        if before is None or end is None:
            return None
        start = before.start
    return _build_span(start, end, before)


def _read_side(side: str, moment: str | None, day: str | None, zone: zoneinfo.ZoneInfo) -> DayOrTime | None:
    if moment and day:
        hint = f"Give {side}_date_time or {side}_date, not both."
        raise InvalidArguments(f"The {side} is given twice.", hint=hint, field=f"{side}_date")
    if moment:
        return read_moment(_in_figures(moment, zone), zone, f"{side}_date_time")
    return read_day(_in_figures(day, zone), f"{side}_date") if day else None


def to_zone_of(span: EventSpan, before: EventSpan) -> EventSpan:
    """Convert to the event's former zone: a series must keep following its clocks."""
    if not (isinstance(before.start, datetime) and isinstance(span.start, datetime) and isinstance(span.end, datetime)):
        return span
    return EventSpan(span.start.astimezone(before.start.tzinfo), span.end.astimezone(before.start.tzinfo))


def add_length(start: DayOrTime, length: timedelta) -> DayOrTime:
    """Add elapsed time to a moment, or days to a day."""
    if isinstance(start, datetime):
        return (start.astimezone(UTC) + length).astimezone(start.tzinfo)
    return start + length


def _build_span(start: DayOrTime, end: DayOrTime | None, before: EventSpan | None) -> EventSpan:
    timed = isinstance(start, datetime)
    if end is None:
        usual = timedelta(hours=1) if timed else timedelta(days=1)
        kept = _span_length(before) if before is not None and before.all_day != timed else usual
        return EventSpan(start, add_length(start, kept))
    if isinstance(end, datetime) != timed:
        raise InvalidArguments(
            "One of start and end has a time of day and the other has none.",
            hint="Use start_date_time with end_date_time, or start_date with end_date.",
            field="end_date_time" if isinstance(end, datetime) else "end_date",
        )
    if _span_length(EventSpan(start, end)) < timedelta(0) or (not timed and end <= start):
        field = "end_date_time" if timed else "end_date"
        raise InvalidArguments("The event would end before it starts.", field=field)
    return EventSpan(start, end)


def _span_length(span: EventSpan) -> timedelta:
    # Python subtracts moments of one zone by wall clock time, which is wrong across a clock change.
    if isinstance(span.start, datetime) and isinstance(span.end, datetime):
        return span.end.astimezone(UTC) - span.start.astimezone(UTC)
    return timedelta(days=span.end.toordinal() - span.start.toordinal())


def _read_edge(text: str, zone: zoneinfo.ZoneInfo, field: str, whole_day: timedelta) -> datetime:
    text = _in_figures(text, zone)
    whole = _DAY.fullmatch(text) is not None
    return to_utc(read_day(text, field) + whole_day if whole else read_moment(text, zone, field), zone)


def _in_figures(text: str, zone: zoneinfo.ZoneInfo) -> str:
    """A day or time in words ("tomorrow", "monday 10:00") as of now in the zone, in figures; others as they are."""
    text = text.strip()
    in_words = _WORD.search(text) is not None and not text[:4].isdigit()
    found = parse_in_any_language(text, datetime.now(zone).replace(tzinfo=None)) if in_words else None
    if found is None or not (found.has_time or found.names_day):
        return text
    return found.at.isoformat() if found.has_time else found.at.date().isoformat()


def _check_year(given: T, field: str) -> T:
    if given.year not in _YEARS:
        raise InvalidArguments("That is too far away.", hint="Use a year from 1900 to 2199.", field=field)
    return given
