"""Words that make an event repeat: every monday, daily, every weekday."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta

from annabelle.servers.gmail.calendar.quick.cut import Cut

_CODES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_WORDS = {"daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annually": "year"}
_FREQUENCIES = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
_RULE = re.compile(
    r"\bevery\s+(?P<unit>day|week|month|year|weekday|"
    r"(?P<weekday>mon|tue|wed|thu|fri|sat|sun)(?:day|sday|nesday|rsday|urday)?)s?\b"
    r"|\b(?P<word>daily|weekly|monthly|yearly|annually)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Repeating:
    line: str
    days: frozenset[int] = frozenset()
    """Numbers of the weekdays it is on; empty when the first day decides."""

    def first(self, today: date) -> date:
        """The first day from today on that fits."""
        return next(
            day
            for day in (today + timedelta(days=ahead) for ahead in range(7))
            if not self.days or day.weekday() in self.days
        )


def take_rule(cut: Cut) -> Repeating | None:
    for match in cut.all(_RULE):
        cut.take(match)
        if match["weekday"]:
            code = match["weekday"][:2].upper()
            return Repeating(f"RRULE:FREQ=WEEKLY;BYDAY={code}", frozenset({_CODES.index(code)}))
        unit = _WORDS[match["word"].lower()] if match["word"] else match["unit"].lower()
        if unit == "weekday":
            return Repeating("RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", frozenset(range(5)))
        return Repeating(f"RRULE:FREQ={_FREQUENCIES[unit]}")
    return None
