"""Tools that reckon with dates."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.everyday.calendar_sums import add_months, add_weekdays, span, weekdays_between
from annabelle.servers.everyday.clock import ZoneName
from annabelle.servers.everyday.moments import settle
from annabelle.servers.everyday.spoken import understand
from annabelle.servers.everyday.zones import Zones
from annabelle.servers.kit import Result, tool

_SPOKEN = Field(min_length=1, max_length=200, description="2026-03-15, 2026-03-15 15:00, today, next friday, …")
When = Annotated[str, _SPOKEN]
ZoneOf = Annotated[ZoneName | None, Field(description="Zone or city it is meant in; leave out for the user's own")]
Count = Annotated[int, Field(ge=-10_000_000, le=10_000_000, description="How many to add; negative to go back")]


class DateSpan(Result):
    """How far one date is from another."""

    start: str
    end: str
    days: int = Field(description="Calendar days; negative when the end comes first")
    weeks_and_days: str
    calendar: str = Field(description="In years, months and days")
    business_days: int = Field(description="Mondays to Fridays from the start up to, not counting, the end")
    hours: float | None = Field(default=None, description="Hours that really pass; only when a time of day was given")
    note: str | None = None

    def text(self) -> str:
        hours = f", {self.hours:g} hours" if self.hours is not None else ""
        said = (
            f"From {self.start} to {self.end}: {self.days} days ({self.calendar}{hours}), {self.business_days} of them"
        )
        return f"{said} from Monday to Friday.{f' {self.note}' if self.note else ''}"


class DateFound(Result):
    """A date, or a moment of it."""

    date: str
    time: str | None = Field(default=None, description="With its offset from UTC; absent when only a day is meant")
    weekday: str
    zone: str
    days_from_today: int
    note: str | None = None

    def text(self) -> str:
        when = self.time or self.date
        note = f" {self.note}" if self.note else ""
        return f"{self.weekday}, {when} ({self.zone}), {self.days_from_today:+d} days from today.{note}"


class Dates:
    """date_difference, add_to_date and find_date."""

    def __init__(self, zones: Zones, now: Callable[[], datetime]) -> None:
        self._zones, self._now = zones, now

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def date_difference(self, start: When, end: When, zone: ZoneOf = None) -> DateSpan:
        """Tell how many days, weeks, months, working days and hours lie between two dates. Public holidays are not
        known."""
        where = self._zones.find(zone)
        one = await understand(start, where, self._now(), "start")
        two = await understand(end, where, self._now(), "end")
        first, last = one.moment.at.astimezone(where.info), two.moment.at.astimezone(where.info)
        timed = one.has_time or two.has_time
        days = (last.date() - first.date()).days
        low, high = sorted((first.date(), last.date()))
        between, sign = span(low, high), -1 if days < 0 else 1
        parts = ((between.years, "years"), (between.months, "months"), (between.days, "days"))
        return DateSpan(
            start=_shown(first, timed),
            end=_shown(last, timed),
            days=days,
            weeks_and_days=f"{abs(days) // 7} weeks and {abs(days) % 7} days",
            calendar=", ".join(f"{count} {name}" for count, name in parts if count) or "0 days",
            business_days=sign * weekdays_between(low, high),
            hours=round((last.astimezone(UTC) - first.astimezone(UTC)).total_seconds() / 3600, 4) if timed else None,
            note=" ".join(filter(None, (one.moment.note, two.moment.note))) or None,
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def add_to_date(
        self,
        date: When,
        years: Annotated[int, Field(ge=-9999, le=9999, description="How many to add; negative to go back")] = 0,
        months: Annotated[int, Field(ge=-120_000, le=120_000, description="How many to add")] = 0,
        weeks: Count = 0,
        days: Count = 0,
        business_days: Annotated[
            int, Field(ge=-1_000_000, le=1_000_000, description="Mondays to Fridays to add; holidays are not known")
        ] = 0,
        hours: Count = 0,
        minutes: Count = 0,
        zone: ZoneOf = None,
    ) -> DateFound:
        """Add years, months, weeks, days, working days, hours or minutes to a date, or take them away. Applied in this
        order; 31 January plus a month is the last day of February."""
        where = self._zones.find(zone)
        spoken = await understand(date, where, self._now(), "date")
        wall = spoken.moment.at.astimezone(where.info).replace(tzinfo=None)
        notes = [spoken.moment.note]
        try:
            day = add_months(wall.date(), years * 12 + months)
            if day.day != wall.day:
                notes.append(f"That month has no day {wall.day}, so its last day is meant.")
            day = add_weekdays(day + timedelta(weeks=weeks, days=days), business_days)
            moment = settle(datetime.combine(day, wall.time()), where)
            passed = moment.at.astimezone(UTC) + timedelta(hours=hours, minutes=minutes)
            at = passed.astimezone(where.info)
            if not 1 < at.year < 9999:
                raise OverflowError("at the calendar's edge")
        except (OverflowError, ValueError) as error:
            raise InvalidArguments(
                "The result lies beyond the calendar (years 2 to 9998).", hint="Add less.", field="date"
            ) from error
        timed = spoken.has_time or bool(hours or minutes)
        notes.append(moment.note if timed else None)
        return self._found(at, where.name, timed, notes)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def find_date(
        self,
        text: Annotated[str, Field(min_length=1, max_length=200, description="Words that name a date")],
        zone: ZoneOf = None,
    ) -> DateFound:
        """Turn words into an exact date: "next friday 3pm", "in two weeks", "24 December", "tomorrow at noon"."""
        where = self._zones.find(zone)
        spoken = await understand(text, where, self._now())
        at = spoken.moment.at.astimezone(where.info)
        return self._found(at, where.name, spoken.has_time, [spoken.moment.note])

    def _found(self, at: datetime, zone: str, timed: bool, notes: list[str | None]) -> DateFound:
        today = self._now().astimezone(at.tzinfo).date()
        return DateFound(
            date=at.date().isoformat(),
            time=at.isoformat(timespec="minutes") if timed else None,
            weekday=f"{at:%A}",
            zone=zone,
            days_from_today=(at.date() - today).days,
            note=" ".join(filter(None, notes)) or None,
        )


def _shown(moment: datetime, timed: bool) -> str:
    day: date = moment.date()
    return moment.isoformat(timespec="minutes") if timed and moment.time() != time(0) else day.isoformat()
