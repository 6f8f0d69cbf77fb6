"""Reads when something shall happen from what a person says: "in 10 minutes", "every weekday at 8" (SKL-09)."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

from annabelle import language
from annabelle.core.errors import InvalidArguments
from annabelle.language.spoken_dates import SpokenDate, parse_in_any_language, to_clock
from annabelle.skills.schedule import MOST_MINUTES, IntervalSchedule, OneMoment, Schedule, parse_cron

_FILE: Final = "recurrence.toml"
_CLOCK: Final = re.compile(r"\b(\d{1,2})(?:[:.h](\d{2}))?(?:\s?([ap])\.?m\b\.?)?(?![\d:])", re.IGNORECASE)
_BARE_HOUR: Final = re.compile(r"\b(at|um|à|a las|o|alle|às|om) (\d{1,2})\b(?!\s*[:.\dh]|\s*[ap]\.?m)", re.IGNORECASE)
_LONG_NUMBER: Final = re.compile(r"\d{9}")
_ORDINAL: Final = re.compile(r"\d(?:st|nd|rd|th)\b")
_WORD: Final = re.compile(r"[^\W\d_]+|\d+")
_DEFAULT_CLOCK: Final = time(9)
_HALF_DAY: Final = timedelta(hours=12)
_HINT: Final = "Say it like “in 10 minutes”, “tomorrow at 9” or “every weekday at 8:30”."
_MINUTES: Final = {"minute": 1, "hour": 60, "day": 24 * 60, "week": 7 * 24 * 60}


@dataclass(frozen=True, slots=True)
class _Recurrence:
    """The words of one language."""

    every: frozenset[str]
    second: frozenset[str]
    repeating: frozenset[str]
    units: dict[str, str]
    days: dict[str, str]
    parts: dict[str, str]

    @classmethod
    def read(cls, file: Path) -> _Recurrence:
        stored: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))

        def by_word(table: str) -> dict[str, str]:
            return {word: meaning for meaning, words in stored[table].items() for word in words}

        return cls(
            every=frozenset(stored["every"]),
            second=frozenset(stored["second"]),
            repeating=frozenset(stored["repeating"]),
            units=by_word("units"),
            days=by_word("days"),
            parts=by_word("parts"),
        )


@cache
def _languages() -> tuple[_Recurrence, ...]:
    return tuple(map(_Recurrence.read, sorted(Path(str(language.__file__)).parent.glob(f"*/{_FILE}"))))


def read_when(text: str, now: datetime, time_zone: ZoneInfo) -> Schedule:
    """The schedule that these words mean."""
    for words in _languages():
        found = _read_recurring(text, words, now, time_zone)
        if found is not None:
            return found
    return read_moment(text, now, time_zone)


def read_moment(text: str, now: datetime, time_zone: ZoneInfo) -> OneMoment:
    """A moment to come, as ISO 8601 or in words."""
    local = now.astimezone(time_zone).replace(tzinfo=None)
    try:
        given = datetime.fromisoformat(text.strip())
    except ValueError:
        spoken = parse_in_any_language(_BARE_HOUR.sub(r"\1 \2:00", text), local)
        if spoken is None or _is_misread(text, spoken, local):
            raise InvalidArguments(f"“{text}” is no time that can be read.", hint=_HINT) from None
        span = spoken.at - local.replace(microsecond=0)
        if spoken.relative and spoken.has_time and span:  # so long, whatever clocks show in between
            given = (now + span).astimezone(time_zone)
        elif spoken.has_time:
            given = spoken.at
        else:
            given = datetime.combine(spoken.at.date(), _DEFAULT_CLOCK)
        if given.hour < 12 and _BARE_HOUR.search(text) is not None:
            given = _nearest_half(given, local, moves=_BARE_HOUR.fullmatch(text.strip()) is not None)
    try:
        at = (given if given.tzinfo else given.replace(tzinfo=time_zone)).astimezone(UTC)
    except OverflowError:
        raise InvalidArguments(f"“{text}” is beyond the calendar.", hint=_HINT) from None
    if at <= now:
        raise InvalidArguments(f"“{text}” is over.", hint="Name a time to come.")
    return OneMoment(at)


def _is_misread(text: str, spoken: SpokenDate, local: datetime) -> bool:
    """Of 31 April a year is made, because the day does not exist; of a long number a moment in another time zone."""
    far = not spoken.relative and spoken.at.year > local.year + 1 and str(spoken.at.year) not in text
    return far or _LONG_NUMBER.search(text) is not None


def _nearest_half(given: datetime, local: datetime, *, moves: bool) -> datetime:
    """At three in the afternoon, "at 5" and "tonight at 8" are no hours of the morning."""
    if given <= local:
        return given + _HALF_DAY
    return given - _HALF_DAY if moves and given - _HALF_DAY > local else given


def _read_recurring(text: str, known: _Recurrence, now: datetime, time_zone: ZoneInfo) -> Schedule | None:
    said = text.casefold()
    clock, rest = _take_clock(said, known)
    words = _WORD.findall(rest)
    days = [known.days[word] for word in words if word in known.days]
    unit = next((known.units[word] for word in words if word in known.units), None)
    part = next((known.parts[word] for word in words if word in known.parts), None)
    if not (known.every | known.repeating).intersection(words) or not (days or unit or part):
        return None
    count = next((int(word) for word in words if word.isdecimal()), 0)
    count = count or (2 if any(word in known.second for word in words) else 1)
    if _ORDINAL.search(said) or (count > 1 and (days or unit not in _MINUTES)):
        raise InvalidArguments(f"“{text}” is too much to read at once.", hint="Give it as a cron expression.")
    if unit in _MINUTES and count * _MINUTES[unit] > MOST_MINUTES:
        raise InvalidArguments(f"“{text}” is too long a time.", hint=_HINT)
    if unit in ("minute", "hour") or (unit in _MINUTES and count > 1):
        begin = now if clock is None else _clock_before(clock, now, time_zone)
        return IntervalSchedule(count * _MINUTES[unit], begin)
    at = clock or (_read_clock(part) if part else _DEFAULT_CLOCK)
    weekdays = ",".join(days) or (str(now.astimezone(time_zone).isoweekday() % 7) if unit == "week" else "*")
    day = str(now.astimezone(time_zone).day) if unit == "month" else "*"
    return parse_cron(f"{at.minute} {at.hour} {day} * {weekdays}", time_zone)


def _take_clock(said: str, known: _Recurrence) -> tuple[time | None, str]:
    """A time of day, and the text without it. A bare number is one only where it is not a count."""
    for found in _CLOCK.finditer(said):
        before, after = _WORD.findall(said[: found.start()]), _WORD.findall(said[found.end() :])
        is_count = found[2] is None and found[3] is None and bool(after) and after[0] in known.units
        if is_count or (before and before[-1] in known.every):
            continue
        clock = to_clock(found[1], found[2], found[3])
        if clock is not None:
            return clock, said[: found.start()] + " " + said[found.end() :]
    return None, said


def _read_clock(text: str) -> time:
    hour, _, minute = text.partition(":")
    return time(int(hour), int(minute))


def _clock_before(clock: time, now: datetime, time_zone: ZoneInfo) -> datetime:
    """The last time before now that clocks showed this."""
    local = now.astimezone(time_zone)
    day = local.date() if local.time() >= clock else local.date() - timedelta(days=1)
    return datetime.combine(day, clock, time_zone).astimezone(UTC)
