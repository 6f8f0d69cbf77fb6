"""Parses dates and times people write, in a given time zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from annabelle.core.errors import InvalidArguments
from annabelle.language.spoken_dates import parse_in_any_language, to_clock
from annabelle.servers.everyday.zones import Zone
from annabelle.servers.kit import in_thread

_CLOCK = re.compile(r"(\d{1,2})(?:[:.h](\d{2}))?(?::(\d{2}))?\s*([ap])?\.?m?\.?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ResolvedMoment:
    """A point in time, and what to know about how it was read."""

    at: datetime
    note: str | None = None


def resolve_wall_time(wall: datetime, zone: Zone) -> ResolvedMoment:
    """The moment of a wall clock time in a zone. A time skipped in spring is moved forward; of one that occurs twice in
    autumn, the first is taken."""
    first, second = wall.replace(tzinfo=zone.info, fold=0), wall.replace(tzinfo=zone.info, fold=1)
    if first.utcoffset() == second.utcoffset():
        return ResolvedMoment(first)
    there = first.astimezone(UTC).astimezone(zone.info)
    if there.replace(tzinfo=None) != wall:
        note = (
            f"{wall:%Y-%m-%d %H:%M} does not exist in {zone.name}: the clocks go forward then. Read as {there:%H:%M}."
        )
        return ResolvedMoment(there, note)
    note = (
        f"{wall:%Y-%m-%d %H:%M} comes twice in {zone.name}: the clocks go back then. The first ({first:%Z}) is taken; "
        f"the second ({second:%Z}) is {second.astimezone(UTC):%H:%M} UTC."
    )
    return ResolvedMoment(first, note)


def read_exact(text: str, zone: Zone, today: date) -> ResolvedMoment | None:
    """An ISO time or date, or a time of today; None for anything else."""
    clock = read_clock(text)
    if clock is not None:
        return resolve_wall_time(datetime.combine(today, clock), zone)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return resolve_wall_time(moment, zone) if moment.tzinfo is None else ResolvedMoment(moment)


def read_clock(text: str) -> time | None:
    """`15:30`, `3pm`, `3:30 p.m.`, `noon` or `midnight`."""
    word = text.strip().lower()
    if word in ("noon", "midnight"):
        return time(12 if word == "noon" else 0)
    match = _CLOCK.fullmatch(word)
    if match is None or (match[2] is None and match[4] is None):
        return None
    return to_clock(match[1], match[2], match[4], match[3])


def is_date(text: str) -> bool:
    """Whether an exact text names a day without a time."""
    return re.fullmatch(r"\d{4}-?\d{2}-?\d{2}|\d{4}-?W\d{2}(-?\d)?", text.strip()) is not None


_EITHER = re.compile(r"\b(0?[1-9]|1[0-2])/(0?[1-9]|1[0-2])/\d{2,4}\b")
_NEXT = re.compile(r"\bnext\s+(mon|tues|wednes|thurs|fri|satur|sun)day\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ParsedDate:
    """What the words mean, and whether they name a time of day."""

    moment: ResolvedMoment
    has_time: bool


async def parse_date(text: str, zone: Zone, now: datetime, field: str = "text") -> ParsedDate:
    """The moment a text names, seen from now in a zone; days to come are preferred to days gone by."""
    here = now.astimezone(zone.info).replace(tzinfo=None, microsecond=0)
    exact = read_exact(text.strip(), zone, here.date())
    if exact is not None:
        _refuse_edges(exact.at, field)
        return ParsedDate(exact, not is_date(text))
    found = await in_thread(lambda stop: parse_in_any_language(text, here, stop.check))
    if found is None:
        raise InvalidArguments(
            f"{text[:80]!r} could not be read as a date.",
            hint="Write it like 2026-03-15 15:00, tomorrow 9am, next friday or in 3 weeks.",
            field=field,
        )
    _refuse_edges(found.at, field)
    moment = resolve_wall_time(found.at if found.has_time else datetime.combine(found.at.date(), time(0)), zone)
    return ParsedDate(ResolvedMoment(moment.at, _collect_notes(text, found.has_time, moment.note)), found.has_time)


def _refuse_edges(moment: datetime, field: str) -> None:
    """The first and the last year of the calendar do not exist in every zone."""
    if not 1 < moment.year < 9999:
        raise InvalidArguments("Only the years 2 to 9998 are reckoned with.", field=field)


def _collect_notes(text: str, has_time: bool, other: str | None) -> str | None:
    notes = [other] if other else []
    if _EITHER.search(text):
        notes.append("Read as month/day; write it as year-month-day to be sure.")
    if _NEXT.search(text):
        notes.append("Read as the first one from now; some people mean the one a week later.")
    if not has_time and re.search(r"\d\s*(uhr|h|am|pm)\b|:\d\d", text, re.IGNORECASE):
        notes.append("No time of day was understood.")
    return " ".join(notes) or None
