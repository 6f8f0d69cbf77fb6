"""Reads a date from words: "next friday 3pm", "in two weeks", "24 December"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING

from annabelle.core.errors import InvalidArguments
from annabelle.servers.everyday.moments import Moment, is_date, read_exact, settle
from annabelle.servers.everyday.zones import Zone
from annabelle.servers.kit import StopSign, deferred_module, in_thread

if TYPE_CHECKING:
    import dateparser
else:
    dateparser = deferred_module("dateparser")

_LANGUAGES = (["en"], ["de", "fr", "es", "it", "pt", "nl", "pl"])
"""Tried in this order. All of the library's languages would take seconds for a text that is no date."""
_RELATIVE = re.compile(r"\b(hours?|hrs?|minutes?|mins?|seconds?|secs?|now)\b", re.IGNORECASE)
_MIDNIGHT = re.compile(r"midnight|\b0?0[:.h]00|\b12(:00)?\s*a\.?m", re.IGNORECASE)
_SHIFT = timedelta(hours=1, minutes=7, seconds=13)
_EITHER = re.compile(r"\b(0?[1-9]|1[0-2])/(0?[1-9]|1[0-2])/\d{2,4}\b")
_NEXT = re.compile(r"\bnext\s+(mon|tues|wednes|thurs|fri|satur|sun)day\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Spoken:
    """What the words mean, and whether they name a time of day."""

    moment: Moment
    has_time: bool


async def understand(text: str, zone: Zone, now: datetime, field: str = "text") -> Spoken:
    """The moment a text names, seen from now in a zone; days to come are preferred to days gone by."""
    here = now.astimezone(zone.info).replace(tzinfo=None, microsecond=0)
    exact = read_exact(text.strip(), zone, here.date())
    if exact is not None:
        _refuse_edges(exact.at, field)
        return Spoken(exact, not is_date(text))
    found = await in_thread(lambda stop: _parse(text, here, stop))
    if found is None:
        raise InvalidArguments(
            f"{text[:80]!r} could not be read as a date.",
            hint="Write it like 2026-03-15 15:00, tomorrow 9am, next friday or in 3 weeks.",
            field=field,
        )
    wall, has_time = found
    _refuse_edges(wall, field)
    moment = settle(wall if has_time else datetime.combine(wall.date(), time(0)), zone)
    return Spoken(Moment(moment.at, _notes(text, has_time, moment.note)), has_time)


def _refuse_edges(moment: datetime, field: str) -> None:
    """The first and the last year of the calendar can not be told in every zone."""
    if not 1 < moment.year < 9999:
        raise InvalidArguments("Only the years 2 to 9998 are reckoned with.", field=field)


def _parse(text: str, here: datetime, stop: StopSign) -> tuple[datetime, bool] | None:
    """Parsed from two different starting hours: a time of day that moves along was not in the text."""
    for languages in _LANGUAGES:
        stop.check()
        seen = _one(text, here, languages)
        if seen is None:
            continue
        other = _one(text, here + _SHIFT if here.hour < 22 else here - _SHIFT, languages)
        same = other is not None and other.time() == seen.time()
        named = same and (seen.time() != time(0) or _MIDNIGHT.search(text) is not None)
        return seen, named or _RELATIVE.search(text) is not None
    return None


def _one(text: str, here: datetime, languages: list[str]) -> datetime | None:
    try:
        found = dateparser.parse(
            text,
            languages=languages,
            settings={"RELATIVE_BASE": here, "PREFER_DATES_FROM": "future", "RETURN_AS_TIMEZONE_AWARE": False},
        )
    except (ValueError, OverflowError, TypeError, RecursionError):
        return None  # beyond the calendar, or words the library trips over
    return None if found is None else found.replace(tzinfo=None)


def _notes(text: str, has_time: bool, other: str | None) -> str | None:
    notes = [other] if other else []
    if _EITHER.search(text):
        notes.append("Read as month/day; write it as year-month-day to be sure.")
    if _NEXT.search(text):
        notes.append("Read as the first one from now; some people mean the one a week later.")
    if not has_time and re.search(r"\d\s*(uhr|h|am|pm)\b|:\d\d", text, re.IGNORECASE):
        notes.append("No time of day was understood.")
    return " ".join(notes) or None
