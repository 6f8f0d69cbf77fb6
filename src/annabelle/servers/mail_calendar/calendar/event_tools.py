"""Tools that list, read, create, change and delete events."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from annabelle.core.errors import Conflict, InvalidArguments
from annabelle.core.result_text import for_model, read_on
from annabelle.servers.kit import Result, current_call, in_thread, tool
from annabelle.servers.kit.overflow import Overflow
from annabelle.servers.mail_calendar.calendar.calendar_context import CalendarContext
from annabelle.servers.mail_calendar.calendar.event import (
    PRIMARY,
    Calendar,
    CalendarEvent,
    CalendarService,
    EventChange,
    EventDraft,
    Reminder,
)
from annabelle.servers.mail_calendar.calendar.quick_event import read_sentence
from annabelle.servers.mail_calendar.calendar.recurrence import read_recurrence
from annabelle.servers.mail_calendar.calendar.schemas import (
    DESCRIPTION_CHARS,
    Attendees,
    Body,
    CalendarId,
    EndDay,
    EndMoment,
    EventFound,
    EventId,
    EventSaved,
    EventShown,
    Line,
    Moment,
    ReminderGiven,
    Rule,
    StartDay,
    StartMoment,
    Summary,
    TimeZone,
    Token,
    show_event,
)
from annabelle.servers.mail_calendar.calendar.times import read_span, read_window, to_zone_of

_TRIES = 5


async def create_once(service: CalendarService, calendar_id: str, draft: EventDraft) -> tuple[CalendarEvent, bool]:
    """Create an event unless a repeated call has done so. Returns whether it is new.

    The key comes from the call id or, without one, from the contents. In the latter case, an event that was changed or
    deleted since is not the same.
    """
    call = current_call()
    seed = f"call:{call.user_id}:{call.call_id}" if call.call_id else f"content:{calendar_id}:{draft!r}"
    for number in range(_TRIES):
        key = hashlib.sha256(f"{seed}:{number}".encode()).hexdigest()[:40]
        event, new = await service.create(calendar_id, replace(draft, key=key))
        if new or call.call_id or _matches_draft(event, draft):
            return event, new
    raise Conflict("Events like this one were made and changed several times.", hint="Change one of them instead.")


async def update_with_retry(
    service: CalendarService, calendar_id: str, event_id: str, change_of: Callable[[CalendarEvent], EventChange]
) -> CalendarEvent:
    """Change the current version. On a conflict, read the event again and retry."""
    tries = _TRIES
    while True:
        tries -= 1
        event = await service.get(calendar_id, event_id)
        try:
            return await service.update(event, change_of(event))
        except Conflict:
            if not tries:
                raise


def _matches_draft(event: CalendarEvent, draft: EventDraft) -> bool:
    known, asked = (event.summary, event.location, event.span), (draft.summary, draft.location, draft.span)
    return event.status != "cancelled" and known == asked


class EventDeleted(Result):
    event_id: str
    calendar_id: str

    def to_text(self) -> str:
        return f"Deleted the event{for_model(f' {self.event_id}')}."


class EventWriteTools:
    def __init__(self, context: CalendarContext) -> None:
        self._context = context

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def create_event(
        self,
        summary: Annotated[Summary, Field(description="Title of the event")],
        description: Annotated[Body | None, Field(description="What it is about")] = None,
        location: Annotated[Line | None, Field(description="Where it is")] = None,
        start_date_time: StartMoment = None,
        start_date: StartDay = None,
        end_date_time: EndMoment = None,
        end_date: EndDay = None,
        time_zone: TimeZone = None,
        attendees: Attendees = None,
        recurrence: Annotated[
            list[Rule] | None, Field(max_length=20, description="Rules like RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=10")
        ] = None,
        reminders: Annotated[
            list[ReminderGiven] | None, Field(max_length=5, description="By default those of the calendar")
        ] = None,
        calendar_id: CalendarId = None,
    ) -> EventSaved:
        """Create an event, with a time of day (start_date_time) or for whole days (start_date). Attendees are invited.
        The same event is not created twice."""
        zone = self._context.zone(time_zone)
        span = read_span(
            zone,
            start_date_time=start_date_time,
            start_date=start_date,
            end_date_time=end_date_time,
            end_date=end_date,
        )
        if span is None:
            raise InvalidArguments(
                "The event has no start.", hint="Give start_date_time or start_date.", field="start_date_time"
            )
        draft = EventDraft(
            summary=summary,
            span=span,
            description=description or "",
            location=location or "",
            attendees=tuple(attendees or ()),
            recurrence=read_recurrence(recurrence or (), span, zone),
            reminders=None if reminders is None else tuple(Reminder(one.method, one.minutes) for one in reminders),
        )
        event, new = await create_once(self._context.service(), calendar_id or PRIMARY, draft)
        return EventSaved(outcome="created" if new else "unchanged", event=show_event(event, self._context.zone()))

    @tool(read_only=False, destructive=True, idempotent=True, open_world=True)
    async def update_event(
        self,
        event_id: EventId,
        summary: Annotated[Summary | None, Field(description="New title")] = None,
        description: Annotated[Body | None, Field(description="New description; empty removes it")] = None,
        location: Annotated[Line | None, Field(description="New place; empty removes it")] = None,
        start_date_time: StartMoment = None,
        start_date: StartDay = None,
        end_date_time: EndMoment = None,
        end_date: EndDay = None,
        time_zone: TimeZone = None,
        attendees: Annotated[
            Attendees, Field(description="Addresses of all who are to be invited; who is missing is uninvited")
        ] = None,
        response_status: Annotated[
            Literal["accepted", "declined", "tentative"] | None, Field(description="The user's answer to an invitation")
        ] = None,
        calendar_id: CalendarId = None,
    ) -> EventSaved:
        """Change an event; what is not named stays. A new start alone keeps the length. The id of one event of a
        series changes that one, series_id changes them all."""
        zone = self._context.zone(time_zone)
        times = {
            "start_date_time": start_date_time,
            "start_date": start_date,
            "end_date_time": end_date_time,
            "end_date": end_date,
        }

        def build_change(event: CalendarEvent) -> EventChange:
            span = read_span(zone, **times, before=event.span)
            return EventChange(
                summary=summary,
                description=description,
                location=location,
                span=span if span is None or time_zone else to_zone_of(span, event.span),
                attendees=None if attendees is None else tuple(attendees),
                answer=response_status,
            )

        given = (summary, description, location, attendees, response_status, *times.values())
        if all(value is None for value in given):
            raise InvalidArguments("Nothing is to be changed.", hint="Give at least one new value.")
        event = await update_with_retry(self._context.service(), calendar_id or PRIMARY, event_id, build_change)
        return EventSaved(outcome="updated", event=show_event(event, self._context.zone()))

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def delete_event(self, event_id: EventId, calendar_id: CalendarId = None) -> EventDeleted:
        """Delete an event for good. The id of one event of a series deletes that one, series_id deletes them all."""
        place = calendar_id or PRIMARY
        await self._context.service().delete(place, event_id)
        return EventDeleted(event_id=event_id, calendar_id=place)

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def quick_add_event(
        self,
        text: Annotated[
            Summary, Field(max_length=500, description='What and when, like "Lunch with Ana tomorrow at 12:30 at Luna"')
        ],
        calendar_id: CalendarId = None,
    ) -> EventSaved:
        """Create an event from one sentence with its date, time, length ("for 30 minutes") and place ("at Cafe Luna").
        Check the date in the answer."""
        zone = self._context.zone()
        service, now = self._context.service(), self._context.now().astimezone(zone)
        draft = await in_thread(lambda _: read_sentence(text, now))
        event, new = await create_once(service, calendar_id or PRIMARY, draft)
        return EventSaved(outcome="created" if new else "unchanged", event=show_event(event, zone))


def _format_calendar(one: Calendar) -> str:
    marks = f"{' (main)' if one.primary else ''}{'' if one.own else ' (read only)'}"
    return f"{one.name}{marks}{for_model(f' [{one.id}]')}"


class CalendarsFound(Result):
    calendars: list[Calendar]

    def to_text(self) -> str:
        return "\n".join(map(_format_calendar, self.calendars))


class EventsFound(Result):
    events: list[EventShown]
    time_min: str
    time_max: str
    next_page_token: str | None = None
    unreadable: int = Field(default=0, description="Events the server wrote in a way that can not be read")

    def to_text(self) -> str:
        lines = [event.to_line() for event in self.events] or ["No events in this time."]
        if self.unreadable:
            lines.append(f"{self.unreadable} more can not be read.")
        if self.next_page_token:
            lines.append(read_on(f"More with page_token {self.next_page_token}"))
        return "\n".join(lines)


class EventReadTools:
    def __init__(self, context: CalendarContext, overflow: Overflow) -> None:
        self._context, self._overflow = context, overflow

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_calendars(self) -> CalendarsFound:
        """List the user's calendars with their ids."""
        return CalendarsFound(calendars=await self._context.service().calendars())

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
        zone = self._context.zone(time_zone)
        window = read_window(time_min, time_max, zone, self._context.now(), query or "")
        page = await self._context.service().events(calendar_id or PRIMARY, window, max_results, page_token)
        return EventsFound(
            events=[show_event(event, zone) for event in page.events],
            time_min=window.start.astimezone(zone).isoformat(timespec="seconds"),
            time_max=window.end.astimezone(zone).isoformat(timespec="seconds"),
            next_page_token=page.next_page,
            unreadable=page.unreadable,
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def get_event(self, event_id: EventId, calendar_id: CalendarId = None) -> EventFound:
        """Get one event with its description, attendees and reminders."""
        event = await self._context.service().get(calendar_id or PRIMARY, event_id)
        shown = await self._overflow.show_text(event.description, DESCRIPTION_CHARS, "event.txt")
        return EventFound(event=show_event(event, self._context.zone(), description=shown.text, rest=shown.rest))
