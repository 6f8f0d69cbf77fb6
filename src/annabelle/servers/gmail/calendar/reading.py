"""Tools that look into calendars."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from annabelle.servers.gmail.calendar.desk import Desk
from annabelle.servers.gmail.calendar.results import DESCRIPTION_CHARS, EventFound, EventShown, show
from annabelle.servers.gmail.calendar.service import PRIMARY
from annabelle.servers.gmail.calendar.when import read_window
from annabelle.servers.gmail.calendar.wording import CalendarId, EventId, Line, Moment, TimeZone, Token
from annabelle.servers.kit import Result, tool
from annabelle.servers.kit.overflow import Overflow


class CalendarShown(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    primary: bool = Field(description="Whether it is the user's main one")
    own: bool = Field(description="Whether the user can change it")
    time_zone: str | None = None
    description: str | None = None


class CalendarsFound(Result):
    calendars: list[CalendarShown]

    def text(self) -> str:
        return "\n".join(
            f"{one.name}{' (main)' if one.primary else ''}{'' if one.own else ' (read only)'} [{one.id}]"
            for one in self.calendars
        )


class EventsFound(Result):
    events: list[EventShown]
    time_min: str
    time_max: str
    next_page_token: str | None = None
    unreadable: int = Field(default=0, description="Events the server wrote in a way that can not be read")

    def text(self) -> str:
        lines = [event.line() for event in self.events] or ["No events in this time."]
        if self.unreadable:
            lines.append(f"{self.unreadable} more can not be read.")
        if self.next_page_token:
            lines.append(f"More with page_token {self.next_page_token}")
        return "\n".join(lines)


class Reading:
    """list_calendars, list_events and get_event."""

    def __init__(self, desk: Desk, overflow: Overflow) -> None:
        self._desk, self._overflow = desk, overflow

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_calendars(self) -> CalendarsFound:
        """List the user's calendars with their ids."""
        found = await self._desk.service().calendars()
        return CalendarsFound(
            calendars=[
                CalendarShown(
                    id=one.id,
                    name=one.name,
                    primary=one.primary,
                    own=one.own,
                    time_zone=one.zone or None,
                    description=one.description[:200] or None,
                )
                for one in found
            ]
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_events(
        self,
        calendar_id: CalendarId = None,
        time_min: Annotated[
            Moment | None,
            Field(description="From when on, like 2026-12-03T09:00 or 2026-12-03; by default now"),
        ] = None,
        time_max: Annotated[
            Moment | None,
            Field(description="Until when; a date alone includes that day; by default 30 days after time_min"),
        ] = None,
        query: Annotated[Line | None, Field(description="Words that must be in the event")] = None,
        max_results: Annotated[int, Field(ge=1, le=250, description="How many at most")] = 50,
        page_token: Annotated[Token | None, Field(description="next_page_token of the page before")] = None,
        time_zone: TimeZone = None,
    ) -> EventsFound:
        """List events of a calendar by their start. Repeating events are listed one by one; the id of one is for that
        day alone, series_id for all of them."""
        zone = self._desk.zone(time_zone)
        window = read_window(time_min, time_max, zone, self._desk.now(), query or "")
        page = await self._desk.service().events(calendar_id or PRIMARY, window, max_results, page_token)
        return EventsFound(
            events=[show(event, zone) for event in page.events],
            time_min=window.start.astimezone(zone).isoformat(timespec="seconds"),
            time_max=window.end.astimezone(zone).isoformat(timespec="seconds"),
            next_page_token=page.next_page,
            unreadable=page.unreadable,
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def get_event(self, event_id: EventId, calendar_id: CalendarId = None) -> EventFound:
        """Get one event with its description, attendees and reminders."""
        event = await self._desk.service().get(calendar_id or PRIMARY, event_id)
        shown = await self._overflow.show(event.description, DESCRIPTION_CHARS, "event.txt")
        return EventFound(event=show(event, self._desk.zone(), description=shown.text, rest=shown.rest))
