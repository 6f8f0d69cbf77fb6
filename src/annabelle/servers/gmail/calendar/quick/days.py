"""Days in a sentence: tomorrow, friday, Dec 24, 3 December 2027, 2026-12-03, from Dec 3 to Dec 5, in 3 days."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from annabelle.servers.gmail.calendar.quick.cut import Cut

_MONTH_NAMES = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_DAY_NAMES = {name.lower(): number for number, name in enumerate(calendar.day_name)}
_MONTHS = _MONTH_NAMES | {name[:3]: number for name, number in _MONTH_NAMES.items()} | {"sept": 9}
_WEEKDAYS = _DAY_NAMES | {name[:3]: number for name, number in _DAY_NAMES.items()} | {"tues": 1, "thur": 3, "thurs": 3}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_WEEKDAY = "|".join(sorted(_WEEKDAYS, key=len, reverse=True))
_LINK = r"\s*(?:-|–|—|\bto\b|\buntil\b|\btill\b|\bthrough\b)\s*"
_ON = r"(?:\b(?:on|from|by)\s+)?(?:\bthe\s+)?"
_NTH = r"(?:st|nd|rd|th)?"

_ISO = re.compile(rf"{_ON}\b(?P<year>\d{{4}})-(?P<month>\d{{2}})-(?P<day>\d{{2}})\b", re.IGNORECASE)
_DOTTED = re.compile(
    rf"{_ON}(?<![\d.])(?P<day>\d{{1,2}})\.(?P<month>\d{{1,2}})\.(?P<year>\d{{4}})?(?!\d)", re.IGNORECASE
)
_MONTH_DAY = re.compile(
    rf"{_ON}\b(?P<month>{_MONTH})\.?\s+(?P<day>\d{{1,2}}){_NTH}\b(?!:)(?:,?\s+(?P<year>\d{{4}})\b)?", re.IGNORECASE
)
_DAY_MONTH = re.compile(
    rf"{_ON}\b(?P<day>\d{{1,2}}){_NTH}\.?\s+(?:of\s+)?(?P<month>{_MONTH})\b\.?(?:,?\s+(?P<year>\d{{4}})\b)?",
    re.IGNORECASE,
)
_NAMED = re.compile(rf"{_ON}(?:(?P<which>this|next|coming)\s+)?\b(?P<weekday>{_WEEKDAY})\b\.?", re.IGNORECASE)
_RELATIVE = re.compile(
    r"\b(?:the\s+)?(?P<word>day\s+after\s+tomorrow|tomorrow|today|tonight|next\s+week|next\s+month)\b", re.IGNORECASE
)
_IN = re.compile(r"\bin\s+(?P<number>\d{1,4}|an?)\s+(?P<unit>minutes?|mins?|hours?|days?|weeks?|months?)\b", re.I)
_UNTIL_DAY = re.compile(rf"{_LINK}(?P<day>\d{{1,2}}){_NTH}\b(?!:|\s*[ap]m)(?!\s+(?:{_MONTH})\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Day:
    """A day, and what may be done with it if it is over: the step to the next one that fits the words."""

    day: date
    again: Callable[[date], date] | None = None
    not_today: bool = False
    """Whether a whole day of these words is a later one than today, as with "holiday on friday" on a friday."""
    moment: datetime | None = None
    """The very minute, where the words tell one: "in 3 hours"."""

    def next(self) -> date:
        return self.day if self.again is None else self.again(self.day)


def take_days(cut: Cut, now: datetime) -> tuple[Day, Day | None] | None:
    """The first day that is named, and the last if there are two with "to" between them."""
    found = _first(cut.text, now)
    if found is None:
        return None
    match, first = found
    before = cut.text
    cut.take(match)
    tail = before[match.end() :]
    short = _UNTIL_DAY.match(tail)
    if short is not None and (match.groupdict().get("month") or match.groupdict().get("year")):
        last = _made(first.day.year, first.day.month, int(short["day"]))
        if last is not None and last >= first.day:
            cut.take_phrase(short.group(0))
            return first, Day(last, first.again)
    link = re.match(_LINK, tail, re.IGNORECASE)
    second = _first(tail[link.end() :], now, at_start=True) if link is not None else None
    if link is None or second is None:
        return first, None
    cut.take_phrase(f"{link.group(0)}{second[0].group(0)}")
    return first, second[1]


def _first(text: str, now: datetime, *, at_start: bool = False) -> tuple[re.Match[str], Day] | None:
    readers: list[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], Day | None]]] = [
        (_ISO, _dated),
        (_DOTTED, _dated),
        (_MONTH_DAY, _dated),
        (_DAY_MONTH, _dated),
        (_RELATIVE, _worded),
        (_IN, _counted),
        (_NAMED, _weekday),
    ]
    for pattern, read in readers:
        for match in [pattern.match(text)] if at_start else pattern.finditer(text):
            day = read(match, now) if match is not None else None
            if match is not None and day is not None:
                return match, day
    return None


def _dated(match: re.Match[str], now: datetime) -> Day | None:
    month = _MONTHS.get(match["month"].lower()) or int(match["month"])
    day = int(match["day"])
    if match["year"]:
        made = _made(int(match["year"]), month, day)
        return None if made is None else Day(made)
    this_year = next((made for year in range(now.year, now.year + 9) if (made := _made(year, month, day))), None)
    return None if this_year is None else Day(this_year, _next_year)


def _worded(match: re.Match[str], now: datetime) -> Day | None:
    word = " ".join(match["word"].lower().split())
    if word in ("today", "tonight"):
        return Day(now.date())
    if word == "next week":
        return Day(now.date() + timedelta(days=7))
    if word == "next month":
        return Day(_months_later(now.date(), 1))
    return Day(now.date() + timedelta(days=2 if word.startswith("day") else 1))


def _counted(match: re.Match[str], now: datetime) -> Day | None:
    count = 1 if match["number"].lower().startswith("a") else int(match["number"])
    unit = match["unit"][:2].lower()
    if unit in ("mi", "ho"):
        length = timedelta(minutes=count) if unit == "mi" else timedelta(hours=count)
        moment = (now.astimezone(UTC) + length).astimezone(now.tzinfo).replace(second=0, microsecond=0)
        return Day(moment.date(), moment=moment)
    if unit == "mo":
        return Day(_months_later(now.date(), count)) if count <= 1200 else None
    return Day(now.date() + timedelta(days=count * (7 if unit == "we" else 1)))


def _weekday(match: re.Match[str], now: datetime) -> Day | None:
    ahead = (_WEEKDAYS[match["weekday"].lower()] - now.weekday()) % 7
    if ahead == 0 and (match["which"] or "").lower() == "next":
        ahead = 7
    not_today = (match["which"] or "").lower() != "this"
    return Day(now.date() + timedelta(days=ahead), lambda day: day + timedelta(days=7), not_today)


def _next_year(day: date) -> date:
    """The same day of the next year that has it."""
    return next(made for year in range(day.year + 1, day.year + 9) if (made := _made(year, day.month, day.day)))


def _months_later(day: date, count: int) -> date:
    year, month = divmod(day.month - 1 + count, 12)
    last = calendar.monthrange(day.year + year, month + 1)[1]
    return date(day.year + year, month + 1, min(day.day, last))


def _made(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
