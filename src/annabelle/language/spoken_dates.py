"""Reads dates people write in words, with dateparser, and times of day."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

ENGLISH = ("en",)
OTHER_LANGUAGES = ("de", "fr", "es", "it", "pt", "nl", "pl", "sv", "da", "tr", "cs", "ru", "uk")
"""English comes first, because short words of other languages look like English ones. All of the library's languages
would take seconds for a text that is not a date."""
_MARK = 777
"""Microseconds of the time that relative dates are counted from: dates that keep them are relative."""


@dataclass(frozen=True, slots=True)
class SpokenDate:
    at: datetime
    """Wall clock time without a zone."""
    has_time: bool
    names_day: bool
    """Whether a day is named, and not just a month, a year or a time of day."""
    relative: bool
    """Whether it is counted from now ("in 3 weeks"), unlike a date or a weekday."""


def parse_spoken(text: str, now: datetime, languages: tuple[str, ...]) -> SpokenDate | None:
    """The date a text names, seen from `now` (wall clock time). Days to come are preferred to days gone by."""
    settings = {
        "RELATIVE_BASE": now.replace(microsecond=_MARK),
        "PREFER_DATES_FROM": "future",
        "RETURN_AS_TIMEZONE_AWARE": False,
        "RETURN_TIME_AS_PERIOD": True,
    }
    from dateparser.date import DateDataParser  # noqa: PLC0415  slow to import, and most processes read no date

    try:
        found = DateDataParser(languages=list(languages), settings=settings).get_date_data(text)
    except (ValueError, OverflowError, TypeError, RecursionError):
        return None  # beyond the calendar, or words the library cannot handle
    if found.date_obj is None:
        return None
    at, relative = found.date_obj.replace(tzinfo=None), found.date_obj.microsecond == _MARK
    has_time = found.period in ("time", "part_of_day")
    names_day = relative or found.period in ("day", "part_of_day")
    return SpokenDate(at.replace(microsecond=0), has_time, names_day, relative)


def parse_in_any_language(text: str, now: datetime, check: Callable[[], None] = lambda: None) -> SpokenDate | None:
    """English first, then the others. `check` may raise in between, to stop."""
    for languages in (ENGLISH, OTHER_LANGUAGES):
        check()
        if (found := parse_spoken(text, now, languages)) is not None:
            return found
    return None


def read_day(value: object) -> object:
    """A day in words, as of today in the user's time zone (USER_TIMEZONE); anything else is left to the type."""
    if not isinstance(value, str) or value[:4].isdigit():
        return value
    try:
        here = datetime.now(ZoneInfo(os.environ.get("USER_TIMEZONE") or "UTC")).replace(tzinfo=None)
    except (ZoneInfoNotFoundError, ValueError):
        here = datetime.now()
    found = parse_in_any_language(value, here)
    if found is not None:
        return found.at.date()
    raise PydanticCustomError("day", "it is no day that can be read; write it like 2026-03-15, tomorrow or next friday")


SpokenDay = Annotated[date, BeforeValidator(read_day)]
"""The type of a parameter that is a day."""


def to_clock(hour: str, minute: str | None = None, half: str | None = None, second: str | None = None) -> time | None:
    """A time of day from its figures. `half` begins with "a" or "p" on a clock of twelve hours."""
    hours, minutes, seconds = int(hour), int(minute or 0), int(second or 0)
    if half:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if half.lower().startswith("p") else 0)
    return time(hours, minutes, seconds) if hours < 24 and minutes < 60 and seconds < 60 else None
