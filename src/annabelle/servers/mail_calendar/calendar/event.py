"""Calendar events, drafts and changes, and the interface of calendar providers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Annotated, Literal, Protocol, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from annabelle.core.errors import InvalidArguments, NotFound

DayOrTime = date | datetime
"""A day, or a moment with a zone."""

InvitationAnswer = Literal["accepted", "declined", "tentative", "needsAction"]
INVITATION_ANSWERS: tuple[InvitationAnswer, ...] = get_args(InvitationAnswer)
ReminderMethod = Literal["email", "popup"]


@dataclass(frozen=True, slots=True)
class EventSpan:
    """From start to end, which is excluded. Both are days or both are moments."""

    start: DayOrTime
    end: DayOrTime

    @property
    def all_day(self) -> bool:
        return not isinstance(self.start, datetime)

    @property
    def last_day(self) -> DayOrTime:
        """The end as people say it: the last day of an all-day event."""
        return self.end - timedelta(days=1) if self.all_day else self.end


@dataclass(frozen=True, slots=True)
class Attendee:
    email: str
    name: str = ""
    answer: InvitationAnswer = "needsAction"
    me: bool = False


@dataclass(frozen=True, slots=True)
class Reminder:
    method: ReminderMethod
    minutes: int


@dataclass(frozen=True, slots=True)
class CalendarEvent:
    """An event. An occurrence has its own id; `series_id` is that of its series."""

    id: str
    calendar_id: str
    summary: str
    span: EventSpan
    location: str = ""
    description: str = ""
    attendees: tuple[Attendee, ...] = ()
    organizer: str = ""
    recurrence: tuple[str, ...] = ()
    series_id: str | None = None
    reminders: tuple[Reminder, ...] = ()
    status: str = "confirmed"
    busy: bool = True
    link: str = ""
    version: str = ""
    """Changes with every change on the server."""

    @property
    def my_answer(self) -> InvitationAnswer | None:
        return next((attendee.answer for attendee in self.attendees if attendee.me), None)

    @property
    def blocks(self) -> bool:
        return self.busy and self.status != "cancelled" and self.my_answer != "declined"


def _shorten(text: str | None) -> str | None:
    return (text or "")[:200] or None


class Calendar(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    primary: bool = Field(description="Whether it is the user's main one")
    own: bool = Field(description="Whether the user can change it")
    time_zone: str | None = None
    description: Annotated[str | None, AfterValidator(_shorten)] = None


PRIMARY = "primary"
"""Id of the main calendar on every server, as at Google."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDraft:
    """A new event. Drafts with the same key are the same event."""

    key: str = ""
    summary: str
    span: EventSpan
    description: str = ""
    location: str = ""
    attendees: tuple[str, ...] = ()
    recurrence: tuple[str, ...] = ()
    reminders: tuple[Reminder, ...] | None = None
    """None for the calendar's default."""


@dataclass(frozen=True, slots=True)
class EventChange:
    """Changes to an event. None leaves a field unchanged."""

    summary: str | None = None
    description: str | None = None
    location: str | None = None
    span: EventSpan | None = None
    attendees: tuple[str, ...] | None = None
    answer: InvitationAnswer | None = None

    def texts(self) -> dict[str, object]:
        """The new texts by their names, which are the same everywhere. An empty one removes the former text."""
        texts = {"summary": self.summary, "description": self.description, "location": self.location}
        return {name: text for name, text in texts.items() if text is not None}


@dataclass(frozen=True, slots=True)
class EventWindow:
    """Selects events that overlap the time from `start` to `end`."""

    start: datetime
    end: datetime
    query: str = ""


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events by start, the next page's token, and how many were unreadable."""

    events: list[CalendarEvent]
    next_page: str | None = None
    unreadable: int = 0


def event_not_found() -> NotFound:
    return NotFound(
        "The calendar has no event with this id.",
        hint="List the events and use an id from there, with its calendar_id.",
    )


def not_invited() -> InvalidArguments:
    return InvalidArguments(
        "The user is not invited to this event, so there is nothing to answer.", field="response_status"
    )


class CalendarService(Protocol):
    """Calendars of one account. Ids come from its own results."""

    async def calendars(self) -> list[Calendar]: ...

    async def events(self, calendar_id: str, window: EventWindow, size: int, page_token: str | None) -> EventPage:
        """Events of a window, with recurring ones expanded."""
        ...

    async def get(self, calendar_id: str, event_id: str) -> CalendarEvent: ...

    async def create(self, calendar_id: str, draft: EventDraft) -> tuple[CalendarEvent, bool]:
        """Return the event, and whether it is new: False if the key exists."""
        ...

    async def update(self, event: CalendarEvent, change: EventChange) -> CalendarEvent:
        """Change exactly this version. Raises Conflict if the event has changed."""
        ...

    async def delete(self, calendar_id: str, event_id: str) -> None: ...
