"""What a calendar server can do, and what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from annabelle.core.errors import NotFound
from annabelle.servers.gmail.calendar.event import Answer, Calendar, Event, Reminder, Span

PRIMARY = "primary"
"""The name every server's main calendar goes by, as at Google."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An event that is to be. `key` names it: a second draft with the same key is the same event."""

    key: str
    summary: str
    span: Span
    description: str = ""
    location: str = ""
    attendees: tuple[str, ...] = ()
    recurrence: tuple[str, ...] = ()
    reminders: tuple[Reminder, ...] | None = None
    """None leaves them to the calendar's default."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of an event; None leaves a part as it is."""

    summary: str | None = None
    description: str | None = None
    location: str | None = None
    span: Span | None = None
    attendees: tuple[str, ...] | None = None
    answer: Answer | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """Which events: those that take place in part or whole from `start` until `end`."""

    start: datetime
    end: datetime
    query: str = ""


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events by their start, the token of the page after them, and how many could not be read."""

    events: list[Event]
    next_page: str | None = None
    unreadable: int = 0


def gone() -> NotFound:
    return NotFound(
        "The calendar has no event with this id.",
        hint="List the events and use an id from there, with its calendar_id.",
    )


class CalendarService(Protocol):
    """Calendars of one account. Every id a method takes is one that another gave."""

    async def calendars(self) -> list[Calendar]: ...

    async def events(self, calendar_id: str, window: Window, size: int, page_token: str | None) -> EventPage:
        """The events of a window, repeating ones one by one."""
        ...

    async def get(self, calendar_id: str, event_id: str) -> Event: ...

    async def create(self, calendar_id: str, draft: Draft) -> tuple[Event, bool]:
        """The event, and whether it is new: False when one with this key is there already."""
        ...

    async def update(self, event: Event, change: Change) -> Event:
        """Change exactly this version; Conflict if the event is another one by now."""
        ...

    async def delete(self, calendar_id: str, event_id: str) -> None: ...
