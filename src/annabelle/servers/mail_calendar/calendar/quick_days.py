"""Finds the days a sentence names, and removes what was understood from it."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from annabelle.servers.kit import deferred_module

_GAP = "\x1f"
_EDGES = " \t,;.:!-–—" + _GAP
_DANGLING = re.compile(r"\s+(?:on|at|from|to|until|the|by|um|am|le|el|om)(?=\s*(?:\x1f|$))", re.IGNORECASE)


class RemainingText:
    def __init__(self, sentence: str) -> None:
        self._text = sentence.replace(_GAP, " ")

    @property
    def text(self) -> str:
        """What nobody has taken; a gap keeps apart what did not stand together."""
        return self._text

    def find_all(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Every place that fits. After one is taken the text is another one: stop then, or ask again."""
        return pattern.finditer(self._text)

    def remove_match(self, match: re.Match[str]) -> None:
        self._text = f"{self._text[: match.start()]} {_GAP} {self._text[match.end() :]}"

    def remove_phrase(self, phrase: str) -> None:
        self._text = self._text.replace(phrase, f" {_GAP} ", 1)

    def to_title(self) -> str:
        """What is left, without words that pointed to what was taken."""
        left = _DANGLING.sub(" ", self._text)
        return " ".join(left.replace(_GAP, " ").split()).strip(_EDGES)


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
class NamedDay:
    """A day, and what may be done with it if it is over: the step to the next one that fits the words."""

    day: date
    again: Callable[[date], date] | None = None
    not_today: bool = False
    """Whether a whole day of these words is a later one than today, as with "holiday on friday" on a friday."""
    moment: datetime | None = None
    """The very minute, where the words tell one: "in 3 hours"."""

    def next_day(self) -> date:
        return self.day if self.again is None else self.again(self.day)


def take_days(cut: RemainingText, now: datetime) -> tuple[NamedDay, NamedDay | None] | None:
    """The first day that is named, and the last if there are two with "to" between them."""
    found = _find_first(cut.text, now)
    if found is None:
        return None
    match, first = found
    before = cut.text
    cut.remove_match(match)
    tail = before[match.end() :]
    short = _UNTIL_DAY.match(tail)
    if short is not None and (match.groupdict().get("month") or match.groupdict().get("year")):
        last = _date_or_none(first.day.year, first.day.month, int(short["day"]))
        if last is not None and last >= first.day:
            cut.remove_phrase(short.group(0))
            return first, NamedDay(last, first.again)
    link = re.match(_LINK, tail, re.IGNORECASE)
    second = _find_first(tail[link.end() :], now, at_start=True) if link is not None else None
    if link is None or second is None:
        return first, None
    cut.remove_phrase(f"{link.group(0)}{second[0].group(0)}")
    return first, second[1]


def _find_first(text: str, now: datetime, *, at_start: bool = False) -> tuple[re.Match[str], NamedDay] | None:
    readers: list[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], NamedDay | None]]] = [
        (_ISO, _read_date),
        (_DOTTED, _read_date),
        (_MONTH_DAY, _read_date),
        (_DAY_MONTH, _read_date),
        (_RELATIVE, _read_relative),
        (_IN, _read_counted),
        (_NAMED, _read_weekday),
    ]
    for pattern, read in readers:
        for match in [pattern.match(text)] if at_start else pattern.finditer(text):
            day = read(match, now) if match is not None else None
            if match is not None and day is not None:
                return match, day
    return None


def _read_date(match: re.Match[str], now: datetime) -> NamedDay | None:
    month = _MONTHS.get(match["month"].lower()) or int(match["month"])
    day = int(match["day"])
    if match["year"]:
        made = _date_or_none(int(match["year"]), month, day)
        return None if made is None else NamedDay(made)
    this_year = next(
        (made for year in range(now.year, now.year + 9) if (made := _date_or_none(year, month, day))), None
    )
    return None if this_year is None else NamedDay(this_year, _next_year)


def _read_relative(match: re.Match[str], now: datetime) -> NamedDay | None:
    word = " ".join(match["word"].lower().split())
    if word in ("today", "tonight"):
        return NamedDay(now.date())
    if word == "next week":
        return NamedDay(now.date() + timedelta(days=7))
    if word == "next month":
        return NamedDay(_months_later(now.date(), 1))
    return NamedDay(now.date() + timedelta(days=2 if word.startswith("day") else 1))


def _read_counted(match: re.Match[str], now: datetime) -> NamedDay | None:
    count = 1 if match["number"].lower().startswith("a") else int(match["number"])
    unit = match["unit"][:2].lower()
    if unit in ("mi", "ho"):
        length = timedelta(minutes=count) if unit == "mi" else timedelta(hours=count)
        moment = (now.astimezone(UTC) + length).astimezone(now.tzinfo).replace(second=0, microsecond=0)
        return NamedDay(moment.date(), moment=moment)
    if unit == "mo":
        return NamedDay(_months_later(now.date(), count)) if count <= 1200 else None
    return NamedDay(now.date() + timedelta(days=count * (7 if unit == "we" else 1)))


def _read_weekday(match: re.Match[str], now: datetime) -> NamedDay | None:
    ahead = (_WEEKDAYS[match["weekday"].lower()] - now.weekday()) % 7
    if ahead == 0 and (match["which"] or "").lower() == "next":
        ahead = 7
    not_today = (match["which"] or "").lower() != "this"
    return NamedDay(now.date() + timedelta(days=ahead), lambda day: day + timedelta(days=7), not_today)


def _next_year(day: date) -> date:
    """The same day of the next year that has it."""
    return next(made for year in range(day.year + 1, day.year + 9) if (made := _date_or_none(year, day.month, day.day)))


def _months_later(day: date, count: int) -> date:
    year, month = divmod(day.month - 1 + count, 12)
    last = calendar.monthrange(day.year + year, month + 1)[1]
    return date(day.year + year, month + 1, min(day.day, last))


def _date_or_none(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


if TYPE_CHECKING:

    class _Search(Protocol):
        def search_dates(
            self, text: str, *, languages: list[str], settings: dict[str, object], add_period: bool
        ) -> list[tuple[str, datetime, str]] | None: ...

    _dates: _Search
else:
    _dates = deferred_module("dateparser.search")

_LANGUAGES = ("en", "de", "es", "fr", "it", "pt", "nl", "pl", "sv", "da", "tr", "cs", "ru", "uk")
_FIGURES = re.compile(r"\d+[./-]\d+[./-]\d+|(?!24/7)\b\d{1,2}/\d{1,2}\b")
_CLEAR = re.compile(rf"{_FIGURES.pattern}|[^\W\d]{{4,}}")
"""A short word alone may be a name: "Call Mar" is no day in March. English words were looked for before."""


def take_foreign_day(cut: RemainingText, now: datetime) -> NamedDay | None:
    """The first day that one of the languages knows. Best effort: what it finds is shown to the user with its date."""
    settings: dict[str, object] = {
        "RELATIVE_BASE": now.replace(tzinfo=None),
        "PREFER_DATES_FROM": "future",
        "PARSERS": ["relative-time", "absolute-time"],
    }
    for language in _LANGUAGES:
        found = _dates.search_dates(cut.text, languages=[language], settings=settings, add_period=True) or []
        for phrase, moment, period in found:
            if period == "day" and (_FIGURES if language == "en" else _CLEAR).search(phrase):
                cut.remove_phrase(phrase)
                return NamedDay(moment.date())
    return None
