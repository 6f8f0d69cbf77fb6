"""The tool that finds free time."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.gmail.calendar.desk import Desk
from annabelle.servers.gmail.calendar.event import Event
from annabelle.servers.gmail.calendar.free import busy_slots, free_slots, hours_of_days
from annabelle.servers.gmail.calendar.results import period
from annabelle.servers.gmail.calendar.service import CalendarService, EventPage, Window
from annabelle.servers.gmail.calendar.when import read_window
from annabelle.servers.gmail.calendar.wording import Id, Moment, TimeZone
from annabelle.servers.kit import Result, tool

_LONGEST = timedelta(days=92)
_PAGE = 250
_MAX_PAGES = 20
_MAX_SLOTS = 200

HourOfDay = Annotated[str, Field(pattern=r"^([01]?\d|2[0-3]):[0-5]\d$")]


class FreeSlot(BaseModel):
    model_config = ConfigDict(frozen=True)

    start: str
    end: str
    minutes: int

    def line(self) -> str:
        hours, minutes = divmod(self.minutes, 60)
        length = " ".join(part for part in (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "") if part)
        return f"{period(datetime.fromisoformat(self.start), datetime.fromisoformat(self.end))} ({length})"


class FreeTime(Result):
    free: list[FreeSlot]
    calendars: list[str] = Field(description="Calendars that were looked into")
    more: bool = Field(default=False, description="Whether there is more than is shown")
    unreadable: int = Field(default=0, description="Events that could not be read and may take up some of this time")

    def text(self) -> str:
        lines = [slot.line() for slot in self.free] or ["No free time."]
        if self.more:
            lines.append("There is more later.")
        if self.unreadable:
            lines.append(f"{self.unreadable} events can not be read and may take up some of this time.")
        return "\n".join(lines)


class Freeing:
    """find_free_time."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def find_free_time(
        self,
        time_min: Annotated[Moment, Field(description="From when on, like 2026-12-03T09:00 or 2026-12-03")],
        time_max: Annotated[Moment, Field(description="Until when; a date alone includes that day")],
        calendar_ids: Annotated[
            list[Id] | None, Field(max_length=50, description="Calendars that count; by default all of the user's own")
        ] = None,
        duration_minutes: Annotated[int, Field(ge=15, le=1_440, description="How long it must be free")] = 15,
        day_start: Annotated[HourOfDay, Field(description="Not earlier in the day than this, like 09:00")] = "00:00",
        day_end: Annotated[
            HourOfDay, Field(description="Not later in the day than this, like 17:00; 00:00 is midnight")
        ] = "00:00",
        time_zone: TimeZone = None,
    ) -> FreeTime:
        """Find when nothing is planned in the user's calendars. Declined, cancelled and "free" events do not count;
        all-day events take their whole day."""
        zone = self._desk.zone(time_zone)
        window = read_window(time_min, time_max, zone, self._desk.now())
        if window.end - window.start > _LONGEST:
            raise InvalidArguments("That is more than three months.", hint="Ask for less.", field="time_max")
        service = self._desk.service()
        ids = list(dict.fromkeys(calendar_ids or [one.id for one in await service.calendars() if one.own]))
        found = [await _all(service, calendar_id, window) for calendar_id in ids]
        events = [event for page in found for event in page.events]
        asked = hours_of_days(window.start, window.end, zone, _clock(day_start), _clock(day_end))
        free = free_slots(asked, busy_slots(events, zone), timedelta(minutes=duration_minutes))
        return FreeTime(
            free=[
                FreeSlot(
                    start=slot.start.astimezone(zone).isoformat(timespec="minutes"),
                    end=slot.end.astimezone(zone).isoformat(timespec="minutes"),
                    minutes=int(slot.length.total_seconds() // 60),
                )
                for slot in free[:_MAX_SLOTS]
            ],
            calendars=ids,
            more=len(free) > _MAX_SLOTS,
            unreadable=sum(page.unreadable for page in found),
        )


async def _all(service: CalendarService, calendar_id: str, window: Window) -> EventPage:
    """All pages as one."""
    events: list[Event] = []
    unreadable = 0
    token: str | None = None
    for _ in range(_MAX_PAGES):
        page = await service.events(calendar_id, window, _PAGE, token)
        events += page.events
        unreadable = max(unreadable, page.unreadable)  # a server that unrolls series counts them anew on every page
        token = page.next_page
        if token is None:
            return EventPage(events, None, unreadable)
    raise InvalidArguments("There are too many events in this time.", hint="Ask for less.", field="time_max")


def _clock(text: str) -> time:
    hours, _, minutes = text.partition(":")
    return time(int(hours), int(minutes))
