"""Reckoning with days: months of different lengths, and weeks with weekends in them."""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import date, timedelta


@dataclass(frozen=True, slots=True)
class Span:
    """From one day to a later one, as people say it."""

    years: int
    months: int
    days: int


def add_months(day: date, months: int) -> date:
    """The same day of a later or earlier month, or that month's last; OverflowError beyond the calendar."""
    count = day.year * 12 + day.month - 1 + months
    year, month = divmod(count, 12)
    if not 1 <= year <= 9999:
        raise OverflowError("beyond the calendar")
    return day.replace(year=year, month=month + 1, day=min(day.day, calendar.monthrange(year, month + 1)[1]))


def span(start: date, end: date) -> Span:
    """Whole years, months and days; `start` is the earlier one."""
    months = (end.year - start.year) * 12 + end.month - start.month
    if add_months(start, months) > end:
        months -= 1
    return Span(months // 12, months % 12, (end - add_months(start, months)).days)


def weekdays_between(start: date, end: date) -> int:
    """Mondays to Fridays from `start` up to, and without, `end`; `start` is the earlier one."""
    weeks, rest = divmod((end - start).days, 7)
    return weeks * 5 + sum((start.weekday() + step) % 7 < 5 for step in range(rest))


def add_weekdays(day: date, count: int) -> date:
    """The day `count` working days later or earlier. A weekend counts as its Friday going on, its Monday going back."""
    if count == 0:
        return day
    step = 1 if count > 0 else -1
    weekday = day.weekday()
    if weekday > 4:  # nothing is worked on a weekend: reckoned from the working day before it, seen in our direction
        day -= timedelta(days=weekday - 4) if step > 0 else timedelta(days=weekday - 7)
    weeks, rest = divmod(abs(count), 5)
    day += timedelta(weeks=weeks * step)
    while rest:
        day += timedelta(days=step)
        rest -= day.weekday() < 5
    return day
