"""Tools that tell the time, here and elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from annabelle.servers.everyday.moments import Moment
from annabelle.servers.everyday.spoken import understand
from annabelle.servers.everyday.zones import Zone, Zones
from annabelle.servers.kit import Result, tool
from annabelle.servers.kit.paging import page_of

ZoneName = Annotated[str, Field(min_length=1, max_length=80)]
_PAGE = 50


class LocalTime(BaseModel):
    """A moment as clocks of one zone show it."""

    model_config = ConfigDict(frozen=True)

    zone: str
    time: datetime
    weekday: str
    offset: str = Field(description="From UTC, as in +02:00")
    abbreviation: str
    daylight_saving: bool
    note: str | None = None

    def line(self) -> str:
        note = f" {self.note}" if self.note else ""
        return f"{self.zone}: {self.weekday} {self.time:%Y-%m-%d %H:%M} ({self.abbreviation}, UTC{self.offset}).{note}"


class Times(Result):
    """The same moment in several zones."""

    times: list[LocalTime]
    note: str | None = Field(default=None, description="What to know about how the time was read")

    def text(self) -> str:
        return "\n".join([*(time.line() for time in self.times), *([self.note] if self.note else [])])


class ZoneLine(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    countries: list[str]
    offset: str = Field(description="From UTC, today")


class ZoneList(Result):
    """Time zones that match."""

    zones: list[ZoneLine]
    next_page: str | None = None

    def text(self) -> str:
        lines = [f"{zone.name} (UTC{zone.offset}): {', '.join(zone.countries)}" for zone in self.zones]
        more = [f"[more: page_token {self.next_page}]"] if self.next_page else []
        return "\n".join([*(lines or ["No time zone matches."]), *more])


class Clock:
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
        return Times(times=[local(Moment(now), self._zones.find(name, "zones")) for name in zones or [None]])

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
        spoken = await understand(time, zone, self._now(), "time")
        targets = [zone, *(self._zones.find(name, "to_zones") for name in to_zones)]
        return Times(times=[local(Moment(spoken.moment.at), target) for target in targets], note=spoken.moment.note)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_time_zones(
        self,
        query: Annotated[
            str, Field(max_length=80, description="Part of a city, country or zone name, or an abbreviation like CET")
        ] = "",
        page_token: Annotated[str | None, Field(max_length=40, description="From the page before")] = None,
    ) -> ZoneList:
        """Find time zones by city, country or abbreviation."""
        page = page_of(self._zones.search(query), page_token, _PAGE)
        now = self._now()
        lines = [
            ZoneLine(
                name=listed.name,
                countries=list(listed.countries)[:6],
                offset=offset_of(now.astimezone(self._zones.find(listed.name).info)),
            )
            for listed in page.items
        ]
        return ZoneList(zones=lines, next_page=page.next_page)


def local(moment: Moment, zone: Zone) -> LocalTime:
    """A moment as a zone's clocks show it."""
    there = moment.at.astimezone(zone.info)
    return LocalTime(
        zone=zone.name,
        time=there.replace(microsecond=0),
        weekday=f"{there:%A}",
        offset=offset_of(there),
        abbreviation=f"{there:%Z}",
        daylight_saving=bool(there.dst()),
        note=" ".join(filter(None, (zone.note, moment.note))) or None,
    )


def offset_of(moment: datetime) -> str:
    offset = moment.utcoffset() or timedelta(0)
    minutes = round(abs(offset).total_seconds() / 60)
    return f"{'-' if offset < timedelta(0) else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
