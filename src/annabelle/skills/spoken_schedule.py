"""Reads when something shall happen from what a person says: "in 10 minutes", "every weekday at 8" (SKL-09).

What comes again is read only where every word of it is understood: a wrong time is worse than a question.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from typing import Final
from zoneinfo import ZoneInfo

from annabelle.core.errors import InvalidArguments
from annabelle.language.spoken_dates import parse_in_any_language, to_clock
from annabelle.language.time_words import TimeWord, TimeWords, join_meanings, load_time_words
from annabelle.skills.schedule import MOST_MINUTES, DayStepSchedule, IntervalSchedule, OneMoment, Schedule, parse_cron

_DEFAULT_CLOCK: Final = time(9)
_FIRST_SURE_HOUR: Final = 6
"""Who says "at 5" may mean the afternoon; "at 7" alone is in the morning."""
_LAST_SURE_DATE: Final = 28
_DAYS_AHEAD: Final = 8 * 366
_HINT: Final = "Say it like “in 10 minutes”, “tomorrow at 9” or “every weekday at 8:30”."
_PARTS: Final = {
    "morning": (8, range(1, 12)),
    "noon": (12, range(11, 15)),
    "afternoon": (15, range(12, 21)),
    "evening": (18, range(16, 24)),
    "tonight": (20, (*range(17, 24), 0)),
    "night": (22, (*range(18, 24), *range(5))),
    "midnight": (0, range(1)),
}
"""The hour that a part of the day means by itself, and the hours that may be said with it."""
_CLOCKS: Final = tuple(
    re.compile(rf"(?<!\S)(?:at )?{form}(?!\S)")
    for form in (
        r"c(?P<hour>\d+):(?P<minute>\d\d)(?P<half>[ap]?)(?: oclock)?",
        r"(?P<shift>[+-]\d+) n(?P<hour>\d+)(?: oclock| hour)?",
        r"(?<=at )n(?P<hour>\d+)(?: oclock| hour)? (?P<shift>[+-]\d+)",
        r"n(?P<hour>\d+) (?P<unit>oclock)(?: n(?P<minute>[0-5]\d)(?! m\d))?",
        r"(?<=at )[no](?P<hour>\d+)(?: (?P<unit>hour))?(?: n(?P<minute>[0-5]\d)(?! m\d))?",
        r"(?<!every )(?<!the )n(?P<hour>\d|1[0-2])(?= p:)",
    )
)
_PART: Final = re.compile(r"(?<!\S)p:(\w+)")
_SPAN: Final = re.compile(r"in n\d+ (?:minute|hour)(?: (?:and )?n\d+ (?:minute|hour))*")
_DATE: Final = re.compile(r"(?:the )?[no](\d+) m(\d+)(?: n(\d{4}))?|(?:the n|(?:the )?o)(\d+)|(?:the )?d(\d)")
_ORDINAL: Final = re.compile(r"(?<!\S)o\d")
_UNCLEAR_DATE: Final = re.compile(r"(?<![\d/])(?:0?\d|1[0-2])/(?:0?\d|1[0-2])\b|\d{9}|\de[+-]?\d", re.IGNORECASE)
# How what comes again is put in order before it is read.
_RANGE: Final = re.compile(r"(?:every )?d(\d) to (?:every )?d(\d)(?!\S)")
_ALTERNATE: Final = re.compile(r"(?:n1 )?(day|week|d\d) alternate")
_BEHIND: Final = re.compile(r"(.+) (every (?:(?:[no]\d+|other) )?(?:week|month|year))")
_RECURRENCES: Final = tuple(
    map(
        re.compile,
        (
            r"every (?:(?P<count>[no]\d+|other) )?(?P<unit>minute|hour|day|week|month)",
            r"(?P<part>every)",
            r"(?:every )+(?:week )?(?:every )?(?P<days>d\S+(?: (?:and )?(?:every )?d\S+)*)",
            r"every (?P<count>n\d+|o2|other) (?P<unit>week )?(?:every )?(?P<days>d\d)",
            r"every month (?:day )?(?P<dates>last day|[no]\d+(?: (?:and )?[no]\d+)*)(?: day)?",
            r"every (?P<dates>o\d+)",
            r"every (?:year )?(?P<dates>[no]\d+) m(?P<month>\d+)",
            r"every (?:year )?m(?P<month>\d+) (?P<dates>[no]\d+)",
        ),
    )
)
_NAMED: Final = re.compile(r"(?<!\S)(?:minute|hour|day|week|month|year|[dp]\S+|[mo]\d+)(?!\S)")
_STEP: Final = {"minute": 1, "hour": 60, "day": 24 * 60, "week": 7 * 24 * 60, "month": 1}


@dataclass(frozen=True, slots=True)
class _SpokenTime:
    """What was said in the words of one language: a time of day, a part of the day, and the rest."""

    text: str
    clock: time | None
    is_fixed: bool
    """Whether the clock is one of 24 hours, and no part of the day changes it."""
    is_sure: bool
    """Whether the clock was said like one of 24 hours."""
    part: str | None
    words: list[TimeWord]

    @classmethod
    def read(cls, text: str, language: TimeWords) -> _SpokenTime:
        words = language.split(text)
        clock, is_fixed, is_sure = None, False, False
        joined = join_meanings(words)
        form, found = next(((one, match) for one in _CLOCKS if (match := one.search(joined))), (None, None))
        if found is not None:
            said = found.groupdict()
            hour, half = said["hour"], said.get("half")
            clock = to_clock(hour, said.get("minute"), half)
            is_fixed = bool(half) or not 1 <= int(hour) <= 12
            is_written = form is _CLOCKS[0] and not language.counts_to_twelve
            is_sure = is_fixed or is_written or hour.startswith("0") or said.get("unit") is not None
            if clock is not None:
                minutes = 60 * clock.hour + clock.minute + int(said.get("shift") or 0)
                clock = time(minutes // 60 % 24, minutes % 60)
                first = joined.count(" ", 0, found.start())
                words = words[:first] + words[first + found[0].count(" ") + 1 :]
        part = _PART.search(join_meanings(words))
        rest = [word for word in words if part is None or word.meaning != part[0]]
        return cls(text, clock, is_fixed, is_sure, part and part[1], rest)

    @property
    def rest(self) -> str:
        return join_meanings(self.words)

    @property
    def is_open(self) -> bool:
        """Whether it may be in either half of the day."""
        return self.clock is not None and self.part is None and not self.is_sure and self.clock.hour != 12

    def settle(self) -> time:
        """The time of day that is meant."""
        if self.clock is None:
            return _DEFAULT_CLOCK if self.part is None else time(_PARTS[self.part][0])
        hour = self.clock.hour
        if self.is_open and hour < _FIRST_SURE_HOUR:
            raise InvalidArguments(
                f"“{self.text}” can be in the morning or in the afternoon.",
                hint=f"Say {self.clock:%H:%M} or {self.clock.replace(hour=hour + 12):%H:%M}.",
            )
        if self.part is None:
            return self.clock
        hours = [hour] if self.is_fixed else [hour % 12, hour % 12 + 12]
        fitting = [one for one in hours if one in _PARTS[self.part][1]]
        if len(fitting) != 1:
            raise InvalidArguments(f"“{self.text}” names two times of day.", hint=_HINT)
        return self.clock.replace(hour=fitting[0])


def read_when(text: str, now: datetime, time_zone: ZoneInfo) -> Schedule:
    """The schedule that these words mean."""
    refusals: list[InvalidArguments] = []
    for language in load_time_words():
        try:
            if (found := _read_recurring(_SpokenTime.read(text, language), now, time_zone)) is not None:
                return found
        except InvalidArguments as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]
    return read_moment(text, now, time_zone)


def read_moment(text: str, now: datetime, time_zone: ZoneInfo) -> OneMoment:
    """A moment to come, as ISO 8601 or in words."""
    try:
        given = datetime.fromisoformat(text.strip())
    except ValueError:
        given = _read_spoken_moment(text, now.astimezone(time_zone))
    try:
        at = (given if given.tzinfo else given.replace(tzinfo=time_zone)).astimezone(UTC)
    except OverflowError:
        raise InvalidArguments(f"“{text}” is beyond the calendar.", hint=_HINT) from None
    if at <= now:
        raise InvalidArguments(f"“{text}” is over.", hint="Name a time to come.")
    return OneMoment(at)


def _read_spoken_moment(text: str, here: datetime) -> datetime:
    if _UNCLEAR_DATE.search(text):
        raise InvalidArguments(f"The month in “{text}” is not clear.", hint="Write its name, as in 3 May.")
    local, here = here.replace(tzinfo=None), here.astimezone(UTC)
    readings = [_SpokenTime.read(text, language) for language in load_time_words()]
    for said in sorted(readings, key=lambda one: one.rest.count("?")):
        if said.clock is None and said.part is None and _SPAN.fullmatch(said.rest):
            minutes = sum(int(count) * _STEP[unit] for count, unit in re.findall(r"n(\d+) (\w+)", said.rest))
            if minutes > MOST_MINUTES:
                raise InvalidArguments(f"“{text}” is too long a time.", hint=_HINT)
            return here + timedelta(minutes=minutes)
        if days := _find_days(said, local):
            clocks = [said.clock] if said.clock is not None and said.is_open and said.rest in ("", "today") else []
            clocks = [clock.replace(hour=clock.hour % 12 + half) for clock in clocks for half in (0, 12)]
            moments = [datetime.combine(day, clock) for day in days for clock in clocks or [said.settle()]]
            return next((moment for moment in moments if moment > local), moments[-1])
    spoken = parse_in_any_language(text, local)
    if spoken is None or not (spoken.has_time or spoken.names_day):
        raise InvalidArguments(f"“{text}” is no time that can be read.", hint=_HINT)
    span = spoken.at - local.replace(microsecond=0)
    if spoken.relative and spoken.has_time and span:  # so long, whatever clocks show in between
        return here + span
    return spoken.at if spoken.has_time else datetime.combine(spoken.at.date(), _DEFAULT_CLOCK)


def _find_days(said: _SpokenTime, local: datetime) -> list[date]:
    """The days that may be meant, the next first."""
    today, has_time = local.date(), said.clock is not None or said.part is not None
    if said.rest in ("", "today"):
        return [today, today + timedelta(days=1)][: 1 if said.rest else 2 * has_time]
    if (named := _DATE.fullmatch(said.rest)) is not None:
        day, month, year, alone, weekday = (None if one is None else int(one) for one in named.groups())
        wanted = (weekday, alone or day, month, year)
        coming = (today + timedelta(days=ahead) for ahead in range(weekday is not None, _DAYS_AHEAD))
        if not (fitting := list(islice((one for one in coming if _fits(one, wanted)), 2))):
            raise InvalidArguments(f"“{said.text}” names no day to come.", hint=_HINT)
        return fitting
    if not has_time:
        return []
    spoken = parse_in_any_language("".join(word.text for word in said.words if word.meaning != "the").strip(), local)
    if spoken is None:
        return []
    if spoken.has_time or not spoken.names_day or (spoken.relative and _ORDINAL.search(said.rest)):
        raise InvalidArguments(f"The day in “{said.text}” is not clear.", hint=_HINT)
    return [spoken.at.date()]


def _fits(day: date, wanted: tuple[int | None, ...]) -> bool:
    known = (day.isoweekday() % 7, day.day, day.month, day.year)
    return all(one in (None, value) for one, value in zip(wanted, known, strict=True))


def _read_recurring(said: _SpokenTime, now: datetime, time_zone: ZoneInfo) -> Schedule | None:
    joined = _RANGE.sub(_expand_range, join_meanings([word for word in said.words if word.meaning != "the"]))
    joined = _BEHIND.sub(r"\2 \1", _ALTERNATE.sub(r"every other \1", joined))
    if "every" not in joined.split() or not (said.part or _NAMED.search(joined)):
        return None
    found = next((match.groupdict() for one in _RECURRENCES if (match := one.fullmatch(joined))), None)
    if found is None or ("part" in found and said.part is None):
        raise InvalidArguments(f"“{said.text}” is more than can be read.", hint=_HINT)
    unit = (found.get("unit") or ("week" if found.get("days") else "day")).strip()
    count = int((found.get("count") or "n1").replace("other", "n2")[1:])
    if not 1 <= count * _STEP[unit] <= MOST_MINUTES or (unit == "month" and count > 1):
        raise InvalidArguments(f"“{said.text}” cannot be scheduled.", hint=_HINT)
    if unit in ("minute", "hour"):
        if said.clock is not None or said.part is not None:
            raise InvalidArguments(f"“{said.text}” is more than can be read.", hint="Say “every 2 hours” alone.")
        return IntervalSchedule(count * _STEP[unit], now)
    local, at, weekdays = now.astimezone(time_zone), said.settle(), _read_weekdays(found.get("days") or "")
    if count > 1:
        coming = (local.date() + timedelta(days=ahead) for ahead in range(9))
        fitting = (day for day in coming if not weekdays or day.isoweekday() % 7 in weekdays)
        first = next(day for day in fitting if datetime.combine(day, at, time_zone) > local)
        is_alone = unit == "week" and not weekdays  # "every 2 weeks", counted from today
        step = count * _STEP[unit] // _STEP["day"]
        return DayStepSchedule(step, at, local.date() if is_alone else first, time_zone)
    dates, month = _read_dates(found, unit, local.day), found.get("month") or "*"
    if unit == "week" and not weekdays:
        weekdays = [local.isoweekday() % 7]
    days = "1-5" if weekdays == [1, 2, 3, 4, 5] else ",".join(map(str, weekdays)) or "*"
    return parse_cron(f"{at.minute} {at.hour} {dates} {month} {days}", time_zone)


def _read_dates(found: dict[str, str | None], unit: str, today: int) -> str:
    """The days of the month as in cron. One that not every month has would be left out in some."""
    said = f"n{today}" if unit == "month" else found.get("dates")
    if said is None or said == "last day":
        return "*" if said is None else "l"
    dates = [int(one) for one in re.findall(r"\d+", said)]
    if found.get("month") is None and not all(1 <= one <= _LAST_SURE_DATE for one in dates):
        raise InvalidArguments(f"Not every month has a day {dates[-1]}.", hint="Say “on the last day of every month”.")
    return ",".join(map(str, dates))


def _read_weekdays(said: str) -> list[int]:
    """The days of `d1-5 and d0`."""
    ranges = re.findall(r"(\d)(?:-(\d))?", said)
    return sorted({day for first, last in ranges for day in range(int(first), int(last or first) + 1)})


def _expand_range(days: re.Match[str]) -> str:
    first, last = int(days[1]), int(days[2])
    return f"every d{','.join(str((first + ahead) % 7) for ahead in range((last - first) % 7 + 1))}"
