"""A wall clock's time in a zone, told apart from the ones that do not exist or come twice."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from annabelle.servers.everyday.zones import Zone

_CLOCK = re.compile(r"(\d{1,2})(?:[:.h](\d{2}))?(?::(\d{2}))?\s*([ap])?\.?m?\.?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, and what to know about how it was read."""

    at: datetime
    note: str | None = None


def settle(wall: datetime, zone: Zone) -> Moment:
    """What a wall clock's time means in a zone: in the gap of a spring night the clock is put forward; in the doubled
    hour of autumn the first one is meant."""
    first, second = wall.replace(tzinfo=zone.info, fold=0), wall.replace(tzinfo=zone.info, fold=1)
    if first.utcoffset() == second.utcoffset():
        return Moment(first)
    there = first.astimezone(UTC).astimezone(zone.info)
    if there.replace(tzinfo=None) != wall:
        note = (
            f"{wall:%Y-%m-%d %H:%M} does not exist in {zone.name}: the clocks go forward then. Read as {there:%H:%M}."
        )
        return Moment(there, note)
    note = (
        f"{wall:%Y-%m-%d %H:%M} comes twice in {zone.name}: the clocks go back then. The first ({first:%Z}) is taken; "
        f"the second ({second:%Z}) is {second.astimezone(UTC):%H:%M} UTC."
    )
    return Moment(first, note)


def read_exact(text: str, zone: Zone, today: date) -> Moment | None:
    """An ISO time or date, or a time of today; None for anything that needs more understanding."""
    clock = read_clock(text)
    if clock is not None:
        return settle(datetime.combine(today, clock), zone)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return settle(moment, zone) if moment.tzinfo is None else Moment(moment)


def read_clock(text: str) -> time | None:
    """`15:30`, `3pm`, `3:30 p.m.`, `noon` or `midnight`."""
    word = text.strip().lower()
    if word in ("noon", "midnight"):
        return time(12 if word == "noon" else 0)
    match = _CLOCK.fullmatch(word)
    if match is None or (match[2] is None and match[4] is None):
        return None
    hour, minute, second = int(match[1]), int(match[2] or 0), int(match[3] or 0)
    if match[4]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[4] == "p" else 0)
    return time(hour, minute, second) if hour < 24 and minute < 60 and second < 60 else None


def is_date(text: str) -> bool:
    """Whether an exact text names a day and no time of it."""
    return re.fullmatch(r"\d{4}-?\d{2}-?\d{2}|\d{4}-?W\d{2}(-?\d)?", text.strip()) is not None
