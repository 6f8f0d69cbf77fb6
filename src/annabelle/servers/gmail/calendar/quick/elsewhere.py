"""Days in the words of other languages, and in figures: morgen, el viernes, 3.12.2026, 12/03/2026."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from annabelle.servers.gmail.calendar.quick.cut import Cut
from annabelle.servers.gmail.calendar.quick.days import Day
from annabelle.servers.kit import deferred_module

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


def take_foreign_day(cut: Cut, now: datetime) -> Day | None:
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
                cut.take_phrase(phrase)
                return Day(moment.date())
    return None
