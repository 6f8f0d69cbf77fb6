"""How new results have to be, in the words of each source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal

from annabelle.core.errors import InvalidArguments

Span = Literal["day", "week", "month", "year"]

_SPANS: dict[str, Span] = {"d": "day", "w": "week", "m": "month", "y": "year"}
_DAYS: tuple[tuple[int, Span], ...] = ((1, "day"), (7, "week"), (31, "month"), (366, "year"))
_RANGE = re.compile(r"(\d{4}-\d{2}-\d{2})\s*(?:to|\.\.)\s*(\d{4}-\d{2}-\d{2})")


@dataclass(frozen=True, slots=True)
class Freshness:
    """The past day, week, month or year; or the days from one to another."""

    span: Span | None = None
    days: tuple[date, date] | None = None

    @classmethod
    def parse(cls, text: str | None) -> Freshness:
        word = (text or "").strip().lower()
        if not word or word == "any":
            return cls()
        for letter, span in _SPANS.items():
            if word in (f"p{letter}", letter, span, f"past {span}"):
                return cls(span)
        written = _RANGE.fullmatch(word)
        if written:
            try:
                first, last = date.fromisoformat(written[1]), date.fromisoformat(written[2])
            except ValueError:
                first, last = date.max, date.min
            if first <= last:
                return cls(days=(first, last))
        raise InvalidArguments(
            "freshness is not understood.",
            hint="Use pd, pw, pm or py for the past day, week, month or year, or 2026-01-01to2026-01-31.",
            field="freshness",
        )

    def for_brave(self) -> str | None:
        if self.days:
            return f"{self.days[0].isoformat()}to{self.days[1].isoformat()}"
        return f"p{self.span[0]}" if self.span else None

    def covering(self) -> Span | None:
        """The shortest span up to now that holds all of it, for sources that know no days; None for all time."""
        if self.days is None:
            return self.span
        age = (datetime.now(UTC).date() - self.days[0]).days
        return next((span for days, span in _DAYS if age <= days), None)
