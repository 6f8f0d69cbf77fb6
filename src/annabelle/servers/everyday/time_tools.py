"""Tools for times and dates: now, conversion between zones, and date arithmetic."""

from __future__ import annotations

import calendar
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.core.result_text import read_on
from annabelle.servers.everyday.date_parser import ResolvedMoment, parse_date, resolve_wall_time
from annabelle.servers.everyday.zones import Zone, Zones
from annabelle.servers.kit import Result, tool
from annabelle.servers.kit.pagination import get_page

ZoneName = Annotated[str, Field(min_length=1, max_length=80)]
_PAGE = 50


class LocalTime(Result):
    """A moment as clocks of one zone show it."""

    zone: str
    time: datetime
    weekday: str
    offset: str = Field(description="From UTC, as in +02:00")
    abbreviation: str
    daylight_saving: bool
    note: str | None = None

    def to_line(self) -> str:
        note = f" {self.note}" if self.note else ""
        return f"{self.zone}: {self.weekday} {self.time:%Y-%m-%d %H:%M} ({self.abbreviation}, UTC{self.offset}).{note}"


class Times(Result):
    """The same moment in several zones."""

    times: list[LocalTime]
    note: str | None = Field(default=None, description="What to know about how the time was read")

    def to_text(self) -> str:
        return "\n".join([*(time.to_line() for time in self.times), *([self.note] if self.note else [])])


class ZoneLine(Result):
    name: str
    countries: list[str]
    offset: str = Field(description="From UTC, today")


class ZoneList(Result):
    """Time zones that match."""

    zones: list[ZoneLine]
    next_page: str | None = None

    def to_text(self) -> str:
        lines = [f"{zone.name} (UTC{zone.offset}): {', '.join(zone.countries)}" for zone in self.zones]
        more = [read_on(f"[more: page_token {self.next_page}]")] if self.next_page else []
        return "\n".join([*(lines or ["No time zone matches."]), *more])


class ClockTools:
    """get_time, convert_time and list_time_zones."""

    def __init__(self, zones: Zones, now: Callable[[], datetime]) -> None:
        self._zones, self._now = zones, now

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def get_time(
        self,
        zones: Annotated[
            list[ZoneName] | None,
            Field(max_length=20, description="Zones, large cities or countries; leave out for the user's own zone"),
        ] = None,
    ) -> Times:
        """Tell the date and time now, in the user's time zone or in others."""
        now = self._now()
        return Times(
            times=[to_local_time(ResolvedMoment(now), self._zones.find(name, "zones")) for name in zones or [None]]
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def convert_time(
        self,
        time: Annotated[
            str, Field(min_length=1, max_length=200, description="2026-03-15 15:00, 3pm, now, tomorrow 9am, …")
        ],
        to_zones: Annotated[list[ZoneName], Field(min_length=1, max_length=20, description="Zones or large cities")],
        from_zone: Annotated[
            ZoneName | None, Field(description="Zone or city the time is of; leave out for the user's own")
        ] = None,
    ) -> Times:
        """Convert a time from one time zone to others. Hours that daylight saving skips or doubles are pointed out."""
        zone = self._zones.find(from_zone, "from_zone")
        spoken = await parse_date(time, zone, self._now(), "time")
        targets = [zone, *(self._zones.find(name, "to_zones") for name in to_zones)]
        return Times(
            times=[to_local_time(ResolvedMoment(spoken.moment.at), target) for target in targets],
            note=spoken.moment.note,
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_time_zones(
        self,
        query: Annotated[
            str, Field(max_length=80, description="Part of a city, country or zone name, or an abbreviation like CET")
        ] = "",
        page_token: Annotated[str | None, Field(max_length=40, description="From the page before")] = None,
    ) -> ZoneList:
        """Find time zones by city, country or abbreviation."""
        page = get_page(self._zones.search(query), page_token, _PAGE)
        now = self._now()
        lines = [
            ZoneLine(
                name=listed.name,
                countries=list(listed.countries)[:6],
                offset=format_offset(now.astimezone(self._zones.find(listed.name).info)),
            )
            for listed in page.items
        ]
        return ZoneList(zones=lines, next_page=page.next_page)


def to_local_time(moment: ResolvedMoment, zone: Zone) -> LocalTime:
    """A moment as a zone's clocks show it."""
    there = moment.at.astimezone(zone.info)
    return LocalTime(
        zone=zone.name,
        time=there.replace(microsecond=0),
        weekday=f"{there:%A}",
        offset=format_offset(there),
        abbreviation=f"{there:%Z}",
        daylight_saving=bool(there.dst()),
        note=" ".join(filter(None, (zone.note, moment.note))) or None,
    )


def format_offset(moment: datetime) -> str:
    offset = moment.utcoffset() or timedelta(0)
    minutes = round(abs(offset).total_seconds() / 60)
    return f"{'-' if offset < timedelta(0) else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


@dataclass(frozen=True, slots=True)
class CalendarSpan:
    """From one day to a later one, as people say it."""

    years: int
    months: int
    days: int


def add_months(day: date, months: int) -> date:
    """The same day in a later or earlier month, or the last day of that month; OverflowError beyond the calendar."""
    count = day.year * 12 + day.month - 1 + months
    year, month = divmod(count, 12)
    if not 1 <= year <= 9999:
        raise OverflowError("beyond the calendar")
    return day.replace(year=year, month=month + 1, day=min(day.day, calendar.monthrange(year, month + 1)[1]))


def measure_span(start: date, end: date) -> CalendarSpan:
    """Whole years, months and days; `start` is the earlier one."""
    months = (end.year - start.year) * 12 + end.month - start.month
    if add_months(start, months) > end:
        months -= 1
    return CalendarSpan(months // 12, months % 12, (end - add_months(start, months)).days)


def weekdays_between(start: date, end: date) -> int:
    """Number of Mondays to Fridays from `start` to `end`, which is excluded; `start` is the earlier one."""
    weeks, rest = divmod((end - start).days, 7)
    return weeks * 5 + sum((start.weekday() + step) % 7 < 5 for step in range(rest))


def add_weekdays(day: date, count: int) -> date:
    """The day `count` working days later or earlier. A weekend counts as its Friday going on, its Monday going back."""
    if count == 0:
        return day
    step = 1 if count > 0 else -1
    weekday = day.weekday()
    if weekday > 4:  # a weekend counts as the working day before it, in the direction of counting
        day -= timedelta(days=weekday - 4) if step > 0 else timedelta(days=weekday - 7)
    weeks, rest = divmod(abs(count), 5)
    day += timedelta(weeks=weeks * step)
    while rest:
        day += timedelta(days=step)
        rest -= day.weekday() < 5
    return day


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

    def to_text(self) -> str:
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

    def to_text(self) -> str:
        when = self.time or self.date
        note = f" {self.note}" if self.note else ""
        return f"{self.weekday}, {when} ({self.zone}), {self.days_from_today:+d} days from today.{note}"


class DateTools:
    """date_difference, add_to_date and find_date."""

    def __init__(self, zones: Zones, now: Callable[[], datetime]) -> None:
        self._zones, self._now = zones, now

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def date_difference(self, start: When, end: When, zone: ZoneOf = None) -> DateSpan:
        """Tell how many days, weeks, months, working days and hours lie between two dates. Public holidays are not
        known."""
        where = self._zones.find(zone)
        one = await parse_date(start, where, self._now(), "start")
        two = await parse_date(end, where, self._now(), "end")
        first, last = one.moment.at.astimezone(where.info), two.moment.at.astimezone(where.info)
        timed = one.has_time or two.has_time
        days = (last.date() - first.date()).days
        low, high = sorted((first.date(), last.date()))
        between, sign = measure_span(low, high), -1 if days < 0 else 1
        parts = ((between.years, "years"), (between.months, "months"), (between.days, "days"))
        return DateSpan(
            start=_format_moment(first, timed),
            end=_format_moment(last, timed),
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
        spoken = await parse_date(date, where, self._now(), "date")
        wall = spoken.moment.at.astimezone(where.info).replace(tzinfo=None)
        notes = [spoken.moment.note]
        try:
            day = add_months(wall.date(), years * 12 + months)
            if day.day != wall.day:
                notes.append(f"That month has no day {wall.day}, so its last day is meant.")
            day = add_weekdays(day + timedelta(weeks=weeks, days=days), business_days)
            moment = resolve_wall_time(datetime.combine(day, wall.time()), where)
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
        return self._to_result(at, where.name, timed, notes)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def find_date(
        self,
        text: Annotated[str, Field(min_length=1, max_length=200, description="Words that name a date")],
        zone: ZoneOf = None,
    ) -> DateFound:
        """Turn words into an exact date: "next friday 3pm", "in two weeks", "24 December", "tomorrow at noon"."""
        where = self._zones.find(zone)
        spoken = await parse_date(text, where, self._now())
        at = spoken.moment.at.astimezone(where.info)
        return self._to_result(at, where.name, spoken.has_time, [spoken.moment.note])

    def _to_result(self, at: datetime, zone: str, timed: bool, notes: list[str | None]) -> DateFound:
        today = self._now().astimezone(at.tzinfo).date()
        return DateFound(
            date=at.date().isoformat(),
            time=at.isoformat(timespec="minutes") if timed else None,
            weekday=f"{at:%A}",
            zone=zone,
            days_from_today=(at.date() - today).days,
            note=" ".join(filter(None, notes)) or None,
        )


def _format_moment(moment: datetime, timed: bool) -> str:
    day: date = moment.date()
    return moment.isoformat(timespec="minutes") if timed and moment.time() != time(0) else day.isoformat()
