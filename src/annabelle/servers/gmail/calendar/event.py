"""An event as the tools know it, whatever server it is on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal, get_args

Time = date | datetime
"""A day, or a moment with its zone; never a moment without one."""

Answer = Literal["accepted", "declined", "tentative", "needsAction"]
ANSWERS: tuple[Answer, ...] = get_args(Answer)
ReminderMethod = Literal["email", "popup"]


@dataclass(frozen=True, slots=True)
class Span:
    """From the start to the end, which is not part of it; both are days or both are moments."""

    start: Time
    end: Time

    @property
    def all_day(self) -> bool:
        return not isinstance(self.start, datetime)

    @property
    def last_day(self) -> Time:
        """The end as people say it: an all-day event from Monday to Tuesday ends on Tuesday."""
        return self.end - timedelta(days=1) if self.all_day else self.end


@dataclass(frozen=True, slots=True)
class Attendee:
    email: str
    name: str = ""
    answer: Answer = "needsAction"
    me: bool = False


@dataclass(frozen=True, slots=True)
class Reminder:
    method: ReminderMethod
    minutes: int


@dataclass(frozen=True, slots=True)
class Event:
    """`id` is what its server finds it by. One of a series has an id of its own, and `series_id` names the whole."""

    id: str
    calendar_id: str
    summary: str
    span: Span
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
    """Changes with every change of the event on its server."""

    @property
    def my_answer(self) -> Answer | None:
        return next((attendee.answer for attendee in self.attendees if attendee.me), None)

    @property
    def blocks(self) -> bool:
        """Whether it takes the time it stands for."""
        return self.busy and self.status != "cancelled" and self.my_answer != "declined"


@dataclass(frozen=True, slots=True)
class Calendar:
    id: str
    name: str
    primary: bool = False
    own: bool = True
    zone: str = ""
    description: str = ""
