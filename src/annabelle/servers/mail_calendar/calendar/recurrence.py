"""Recurrence rules (RFC 5545), validated and adapted to the event's start."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, cast
from zoneinfo import ZoneInfo

from annabelle.core.errors import InvalidArguments
from annabelle.servers.kit import deferred_module
from annabelle.servers.mail_calendar.calendar.event import EventSpan
from annabelle.servers.mail_calendar.calendar.times import load_zone, to_zone

if TYPE_CHECKING:
    import icalendar
else:
    icalendar = deferred_module("icalendar")


_FREQUENCIES = {"DAILY", "WEEKLY", "MONTHLY", "YEARLY"}
_DATES = re.compile(r"(?P<name>EXDATE|RDATE)(?P<parameters>(?:;[A-Z]+=[\w/+\-]+)*):(?P<times>[\dTZ,]+)", re.IGNORECASE)
_ZONE = re.compile(r";TZID=([^;]+)", re.IGNORECASE)
_PER_DAY = 48
_OF_LONG_PERIODS = ("BYSETPOS", "BYYEARDAY", "BYWEEKNO")
_LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EXAMPLE = "Write it like RRULE:FREQ=WEEKLY;BYDAY=MO,WE;COUNT=10."

Rule = dict[str, list[object]]


def read_recurrence(lines: Sequence[str], span: EventSpan, zone: ZoneInfo) -> tuple[str, ...]:
    """Normalize the lines. Raises InvalidArguments for an invalid or too frequent rule."""
    return tuple(_read_line(line.strip(), span, zone) for line in lines)


def is_cheap_to_expand(rule: Rule) -> bool:
    """Whether a rule can be expanded quickly.

    An interval of zero never ends, and a day that never occurs ("every 30 February") would be searched for until the
    end of the calendar. An invitation could exploit both.
    """
    frequencies = {str(frequency).upper() for frequency in rule.get("FREQ") or []}
    steps = rule.get("INTERVAL") or [1]
    if not frequencies <= _FREQUENCIES or not all(isinstance(step, int) and step > 0 for step in steps):
        return False
    per_day = 1
    for part in ("BYHOUR", "BYMINUTE", "BYSECOND"):
        per_day *= max(1, len(rule.get(part) or []))
    if per_day > _PER_DAY:
        return False
    short = bool(frequencies & {"DAILY", "WEEKLY"})
    return not (short and any(rule.get(part) for part in _OF_LONG_PERIODS)) and _has_days(rule)


def _has_days(rule: Rule) -> bool:
    months = rule.get("BYMONTH") or list(range(1, 13))
    days = rule.get("BYMONTHDAY") or [1]
    return any(
        isinstance(month, int)
        and isinstance(day, int)
        and 1 <= month <= 12
        and 1 <= abs(day) <= _LONGEST_MONTHS[month - 1]
        for month in months
        for day in days
    )


def _read_line(line: str, span: EventSpan, zone: ZoneInfo) -> str:
    dates = _DATES.fullmatch(line)
    if dates is not None:
        named = _ZONE.search(dates["parameters"])
        place = load_zone(named[1], "recurrence") if named is not None else zone
        times = [_format_time(text, span, place) for text in dates["times"].split(",")]
        return f"{dates['name'].upper()}{';VALUE=DATE' if span.all_day else ''}:{','.join(times)}"
    name, colon, value = line.partition(":")
    if colon and name.upper() != "RRULE":
        raise _rule_error()
    try:
        rule = cast("Rule", icalendar.vRecur.from_ical(value if colon else line))
    except (ValueError, KeyError, TypeError) as error:
        raise _rule_error() from error
    if not rule.get("FREQ") or ("COUNT" in rule and "UNTIL" in rule):
        raise _rule_error()
    if not is_cheap_to_expand(rule):
        raise InvalidArguments("An event repeats by the day, week, month or year.", hint=_EXAMPLE, field="recurrence")
    if rule.get("UNTIL"):
        rule["UNTIL"] = [_read_until(rule["UNTIL"][0], span, zone)]
    return f"RRULE:{icalendar.vRecur(rule).to_ical().decode()}"


def _format_time(text: str, span: EventSpan, zone: ZoneInfo) -> str:
    """Format a time like the event's start. A day means the occurrence on that day."""
    try:
        given = datetime.strptime(text.rstrip("Z"), "%Y%m%dT%H%M%S" if "T" in text else "%Y%m%d")
        if span.all_day:
            return f"{given:%Y%m%d}"
        assert isinstance(span.start, datetime)
        if "T" not in text:
            given = datetime.combine(given, span.start.time())
        moment = given.replace(tzinfo=UTC) if text.endswith("Z") else to_zone(given, zone)
        return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    except (ValueError, OverflowError) as error:
        raise _rule_error() from error


def _read_until(until: object, span: EventSpan, zone: ZoneInfo) -> date:
    """UNTIL in the form of the start: a day for all-day events, otherwise UTC. A day is included."""
    if not isinstance(until, date):
        raise _rule_error()
    if span.all_day:
        return until.date() if isinstance(until, datetime) else until
    if isinstance(until, datetime):
        return to_zone(until, zone).astimezone(UTC)
    end_of_day = datetime.combine(until, time.min) + timedelta(days=1, seconds=-1)
    return to_zone(end_of_day, zone).astimezone(UTC)


def _rule_error() -> InvalidArguments:
    return InvalidArguments("recurrence has a line that is not a rule.", hint=_EXAMPLE, field="recurrence")
