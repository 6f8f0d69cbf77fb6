"""Tools that change calendars."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.gmail.calendar.desk import Desk
from annabelle.servers.gmail.calendar.event import Event, Reminder
from annabelle.servers.gmail.calendar.making import change_event, make
from annabelle.servers.gmail.calendar.quick.sentence import read_sentence
from annabelle.servers.gmail.calendar.recurrence import read_recurrence
from annabelle.servers.gmail.calendar.results import EventSaved, show
from annabelle.servers.gmail.calendar.service import PRIMARY, Change, Draft
from annabelle.servers.gmail.calendar.when import in_zone_of, read_span
from annabelle.servers.gmail.calendar.wording import (
    Attendees,
    Body,
    CalendarId,
    EndDay,
    EndMoment,
    EventId,
    Line,
    ReminderGiven,
    Rule,
    StartDay,
    StartMoment,
    Summary,
    TimeZone,
)
from annabelle.servers.kit import Result, in_thread, tool


class EventDeleted(Result):
    event_id: str
    calendar_id: str

    def text(self) -> str:
        return f"Deleted the event {self.event_id}."


class Writing:
    """create_event, update_event, delete_event and quick_add_event."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

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
        zone = self._desk.zone(time_zone)
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
        draft = Draft(
            key="",
            summary=summary,
            span=span,
            description=description or "",
            location=location or "",
            attendees=tuple(attendees or ()),
            recurrence=read_recurrence(recurrence or (), span, zone),
            reminders=None if reminders is None else tuple(Reminder(one.method, one.minutes) for one in reminders),
        )
        event, new = await make(self._desk.service(), calendar_id or PRIMARY, draft)
        return EventSaved(outcome="created" if new else "unchanged", event=show(event, self._desk.zone()))

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
        zone = self._desk.zone(time_zone)
        times = {
            "start_date_time": start_date_time,
            "start_date": start_date,
            "end_date_time": end_date_time,
            "end_date": end_date,
        }

        def change_of(event: Event) -> Change:
            span = read_span(zone, **times, before=event.span)
            return Change(
                summary=summary,
                description=description,
                location=location,
                span=span if span is None or time_zone else in_zone_of(span, event.span),
                attendees=None if attendees is None else tuple(attendees),
                answer=response_status,
            )

        given = (summary, description, location, attendees, response_status, *times.values())
        if all(value is None for value in given):
            raise InvalidArguments("Nothing is to be changed.", hint="Give at least one new value.")
        event = await change_event(self._desk.service(), calendar_id or PRIMARY, event_id, change_of)
        return EventSaved(outcome="updated", event=show(event, self._desk.zone()))

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def delete_event(self, event_id: EventId, calendar_id: CalendarId = None) -> EventDeleted:
        """Delete an event for good. The id of one event of a series deletes that one, series_id deletes them all."""
        place = calendar_id or PRIMARY
        await self._desk.service().delete(place, event_id)
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
        zone = self._desk.zone()
        service, now = self._desk.service(), self._desk.now().astimezone(zone)
        read = await in_thread(lambda _: read_sentence(text, now))
        draft = Draft(key="", summary=read.summary, span=read.span, location=read.location, recurrence=read.recurrence)
        event, new = await make(service, calendar_id or PRIMARY, draft)
        return EventSaved(outcome="created" if new else "unchanged", event=show(event, zone))
