"""The find_free_time tool."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.kit import Result, tool
from annabelle.servers.mail_calendar.calendar.calendar_context import CalendarContext
from annabelle.servers.mail_calendar.calendar.event import CalendarEvent, CalendarService, EventPage, EventWindow
from annabelle.servers.mail_calendar.calendar.schemas import Id, Moment, TimeZone, format_period
from annabelle.servers.mail_calendar.calendar.times import read_window, to_utc, to_zone


@dataclass(frozen=True, slots=True, order=True)
class TimeSlot:
    """A period in UTC, which has no clock changes."""

    start: datetime
    end: datetime

    @property
    def length(self) -> timedelta:
        return self.end - self.start


def find_busy_slots(events: Iterable[CalendarEvent], zone: ZoneInfo) -> list[TimeSlot]:
    """Merged busy periods. All-day events take whole days in the user's zone."""
    taken = sorted(slot for event in events if event.blocks and (slot := _to_slot(event, zone)).length > timedelta(0))
    merged: list[TimeSlot] = []
    for slot in taken:
        if merged and slot.start <= merged[-1].end:
            merged[-1] = TimeSlot(merged[-1].start, max(merged[-1].end, slot.end))
        else:
            merged.append(slot)
    return merged


def find_free_slots(asked: Iterable[TimeSlot], busy: list[TimeSlot], shortest: timedelta) -> list[TimeSlot]:
    free: list[TimeSlot] = []
    for slot in asked:
        start = slot.start
        for taken in busy:
            if taken.end <= start:
                continue
            if taken.start >= slot.end:
                break
            free.append(TimeSlot(start, taken.start))
            start = taken.end
        free.append(TimeSlot(start, slot.end))
    return [slot for slot in free if slot.length >= shortest]


def daily_hours(start: datetime, end: datetime, zone: ZoneInfo, first: time, last: time) -> list[TimeSlot]:
    """These hours of every day in wall clock time. `last` may be on the next day; equal hours mean all day."""
    if first == last:
        return [TimeSlot(start.astimezone(UTC), end.astimezone(UTC))]
    slots: list[TimeSlot] = []
    day = start.astimezone(zone).date() - timedelta(days=1)
    while day <= end.astimezone(zone).date():
        opens = to_zone(datetime.combine(day, first), zone).astimezone(UTC)
        closing = day + timedelta(days=1) if last <= first else day
        closes = to_zone(datetime.combine(closing, last), zone).astimezone(UTC)
        slot = TimeSlot(max(opens, start.astimezone(UTC)), min(closes, end.astimezone(UTC)))
        if slot.length > timedelta(0):
            slots.append(slot)
        day += timedelta(days=1)
    return slots


def _to_slot(event: CalendarEvent, zone: ZoneInfo) -> TimeSlot:
    return TimeSlot(to_utc(event.span.start, zone), to_utc(event.span.end, zone))


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

    def to_line(self) -> str:
        hours, minutes = divmod(self.minutes, 60)
        length = " ".join(part for part in (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "") if part)
        return f"{format_period(datetime.fromisoformat(self.start), datetime.fromisoformat(self.end))} ({length})"


class FreeTime(Result):
    free: list[FreeSlot]
    calendars: list[str] = Field(description="Calendars that were looked into")
    more: bool = Field(default=False, description="Whether there is more than is shown")
    unreadable: int = Field(default=0, description="Events that could not be read and may take up some of this time")

    def to_text(self) -> str:
        lines = [slot.to_line() for slot in self.free] or ["No free time."]
        if self.more:
            lines.append("There is more later.")
        if self.unreadable:
            lines.append(f"{self.unreadable} events can not be read and may take up some of this time.")
        return "\n".join(lines)


class FreeTimeTool:
    def __init__(self, context: CalendarContext) -> None:
        self._context = context

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
        zone = self._context.zone(time_zone)
        window = read_window(time_min, time_max, zone, self._context.now())
        if window.end - window.start > _LONGEST:
            raise InvalidArguments("That is more than three months.", hint="Ask for less.", field="time_max")
        service = self._context.service()
        ids = list(dict.fromkeys(calendar_ids or [one.id for one in await service.calendars() if one.own]))
        found = [await _load_all_pages(service, calendar_id, window) for calendar_id in ids]
        events = [event for page in found for event in page.events]
        first, last = (_read_hour(hour) for hour in (day_start, day_end))
        asked = daily_hours(window.start, window.end, zone, first, last)
        free = find_free_slots(asked, find_busy_slots(events, zone), timedelta(minutes=duration_minutes))
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


def _read_hour(hour: str) -> time:
    hours, _, minutes = hour.partition(":")
    return time(int(hours), int(minutes))


async def _load_all_pages(service: CalendarService, calendar_id: str, window: EventWindow) -> EventPage:
    events: list[CalendarEvent] = []
    unreadable = 0
    token: str | None = None
    for _ in range(_MAX_PAGES):
        page = await service.events(calendar_id, window, _PAGE, token)
        events += page.events
        unreadable = max(unreadable, page.unreadable)  # the count is repeated on every page
        token = page.next_page
        if token is None:
            return EventPage(events, None, unreadable)
    raise InvalidArguments("There are too many events in this time.", hint="Ask for less.", field="time_max")
