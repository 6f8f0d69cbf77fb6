"""Which days somebody means who looks for an earlier conversation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Final

from annabelle.core.errors import InvalidArguments

_BACK: Final = {"today": 0, "yesterday": 1, "week": 7, "month": 31}
_BETWEEN = re.compile(r"\s*(?:\.\.|/|\bto\b|\s-\s)\s*")
_ALL: Final = ("", "all")


@dataclass(frozen=True, slots=True)
class Days:
    """From one day to another, both included; an open end is None."""

    first: date | None = None
    last: date | None = None

    def touch(self, started: datetime, ended: datetime, where: tzinfo) -> bool:
        """Whether something that lasted from one moment to another falls into these days, where the user is."""
        begun, over = started.astimezone(where).date(), ended.astimezone(where).date()
        return (self.last is None or begun <= self.last) and (self.first is None or over >= self.first)


def days(timeframe: str, today: date) -> Days:
    """`today`, `yesterday`, `week`, `month`, `all`, an ISO date, or two of them; InvalidArguments for anything else."""
    asked = timeframe.strip().lower()
    if asked in _ALL:
        return Days()
    if (back := _BACK.get(asked)) is not None:
        return Days(today - timedelta(back), today - timedelta(1) if asked == "yesterday" else today)
    try:
        ends = [datetime.fromisoformat(part.upper()).date() if part else None for part in _BETWEEN.split(asked)]
    except ValueError:
        ends = []
    if not 1 <= len(ends) <= 2 or not any(ends):
        raise InvalidArguments(
            "The timeframe is not understood.",
            hint="Use today, yesterday, week, month, all, a date as 2026-05-03, or two as 2026-05-01..2026-05-31.",
            field="timeframe",
        )
    first, last = ends[0], ends[-1]
    if first is not None and last is not None and first > last:
        first, last = last, first
    return Days(first, last)
