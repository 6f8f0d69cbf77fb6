"""Parameters and results of the calendar tools."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from annabelle.core.result_text import for_model
from annabelle.servers.kit import Result
from annabelle.servers.mail_calendar.calendar.event import CalendarEvent, DayOrTime, ReminderMethod

DESCRIPTION_CHARS = 4_000
_SNIPPET_CHARS = 200
_ATTENDEES = 100


class AttendeeShown(BaseModel):
    model_config = ConfigDict(frozen=True)

    email: str
    name: str | None = None
    response: str
    me: bool = False


class ReminderShown(BaseModel):
    model_config = ConfigDict(frozen=True)

    method: str
    minutes: int


class EventShown(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: str
    calendar_id: str
    summary: str
    start: str
    end: str = Field(description="Of an all-day event its last day, included")
    all_day: bool
    time_zone: str | None = Field(default=None, description="Zone the event was made in, if it is another one")
    location: str | None = None
    description: str | None = None
    attendees: list[AttendeeShown] = Field(default_factory=list[AttendeeShown])
    organizer: str | None = None
    recurrence: list[str] = Field(default_factory=list[str], description="Rules of a whole series")
    series_id: str | None = Field(default=None, description="Id of the whole series this event is one of")
    reminders: list[ReminderShown] = Field(default_factory=list[ReminderShown])
    status: str
    busy: bool = Field(description="Whether it takes up the time")
    link: str | None = None
    rest: str | None = Field(default=None, description="Workspace file with the whole description, if it was cut")

    def to_line(self) -> str:
        where = f" ({self.location})" if self.location else ""
        series = ", repeats" if self.series_id or self.recurrence else ""
        off = f", {self.status}" if self.status != "confirmed" else ""
        return f"{self.format_when()} {self.summary or '(no title)'}{where}{series}{off}{for_model(f' [{self.id}]')}"

    def format_when(self) -> str:
        if self.all_day:
            first, last = format_day(datetime.fromisoformat(self.start)), format_day(datetime.fromisoformat(self.end))
            return f"{first} all day" if self.start == self.end else f"{first} to {last} all day"
        return format_period(datetime.fromisoformat(self.start), datetime.fromisoformat(self.end))

    def to_details(self) -> str:
        calendar = for_model(f"\nCalendar: {self.calendar_id}")
        parts = [f"{self.to_line()}{calendar}"]
        if self.organizer:
            parts.append(f"Organizer: {self.organizer}")
        parts += [f"Attendee: {one.email} ({one.response}{', the user' if one.me else ''})" for one in self.attendees]
        parts += [f"Repeats: {rule}" for rule in self.recurrence]
        parts += [f"Reminder: {one.method} {one.minutes} min before" for one in self.reminders]
        if self.description:
            parts += ["", self.description]
        if self.rest:
            parts.append(f"[The whole description is in {self.rest}.]")
        return "\n".join(parts)


class EventFound(Result):
    event: EventShown

    def to_text(self) -> str:
        return self.event.to_details()


class EventSaved(Result):
    outcome: str = Field(description="created, updated, or unchanged when it was there already")
    event: EventShown

    def to_text(self) -> str:
        word = "Already there" if self.outcome == "unchanged" else self.outcome.capitalize()
        invited = f" Invited: {', '.join(one.email for one in self.event.attendees)}." if self.event.attendees else ""
        return f"{word}: {self.event.to_line()}{invited}"


def show_event(
    event: CalendarEvent, zone: ZoneInfo, *, description: str | None = None, rest: str | None = None
) -> EventShown:
    """`description` is the text to show. By default, it is the beginning of the event's own."""
    own = event.span.start.tzinfo if isinstance(event.span.start, datetime) else None
    other = own.key if isinstance(own, ZoneInfo) and own.key != zone.key else None
    begins = event.description[:_SNIPPET_CHARS] + ("…" if len(event.description) > _SNIPPET_CHARS else "")
    return EventShown(
        id=event.id,
        calendar_id=event.calendar_id,
        summary=event.summary,
        start=_format_iso(event.span.start, zone),
        end=_format_iso(event.span.last_day, zone),
        all_day=event.span.all_day,
        time_zone=other,
        location=event.location or None,
        description=(begins if description is None else description) or None,
        attendees=[
            AttendeeShown(email=one.email, name=one.name or None, response=one.answer, me=one.me)
            for one in event.attendees[:_ATTENDEES]
        ],
        organizer=event.organizer or None,
        recurrence=list(event.recurrence),
        series_id=event.series_id,
        reminders=[ReminderShown(method=one.method, minutes=one.minutes) for one in event.reminders],
        status=event.status,
        busy=event.blocks,
        link=event.link or None,
        rest=rest,
    )


def format_day(moment: datetime) -> str:
    return f"{moment:%a} {moment.day} {moment:%b %Y}"


def format_period(start: datetime, end: datetime) -> str:
    last = f"{end:%H:%M}" if start.date() == end.date() else f"{format_day(end)} {end:%H:%M}"
    return f"{format_day(start)} {start:%H:%M}–{last}"


def _format_iso(time: DayOrTime, zone: ZoneInfo) -> str:
    return time.astimezone(zone).isoformat() if isinstance(time, datetime) else time.isoformat()


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ADDRESS = re.compile(r"[^@\s,;:<>\"()\[\]\\]{1,64}@[^@\s,;:<>\"()\[\]\\]{1,190}")


def _refuse_control(text: str) -> str:
    if _CONTROL.search(text):
        raise ValueError("there are control characters in it")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _to_one_line(text: str) -> str:
    return " ".join(_refuse_control(text).split())


def _require_text(text: str) -> str:
    if not text:
        raise ValueError("there is nothing in it")
    return text


def _check_address(text: str) -> str:
    if not _ADDRESS.fullmatch(text.strip()):
        raise ValueError("it is not a mail address like ana@example.com")
    return text.strip()


class ReminderGiven(BaseModel):
    """When and how to remind."""

    method: ReminderMethod = Field(description="email or popup")
    minutes: int = Field(ge=0, le=40_320, description="Minutes before the start, at most four weeks")


Line = Annotated[str, Field(max_length=1_000), AfterValidator(_to_one_line)]
Summary = Annotated[Line, AfterValidator(_require_text)]
Body = Annotated[str, Field(max_length=50_000), AfterValidator(_refuse_control)]
Address = Annotated[str, Field(max_length=256), AfterValidator(_check_address)]
Rule = Annotated[str, Field(max_length=1_000), AfterValidator(_to_one_line)]
Moment = Annotated[str, Field(max_length=60), AfterValidator(_to_one_line)]
Id = Annotated[str, Field(min_length=1, max_length=1_024), AfterValidator(_to_one_line), AfterValidator(_require_text)]

Token = Annotated[str, Field(max_length=2_000), AfterValidator(_to_one_line)]

EventId = Annotated[Id, Field(description="Id of the event, as list_events gives it")]
CalendarId = Annotated[
    Token | None, Field(description="Id of the calendar, as list_calendars gives it; by default the user's main one")
]
StartMoment = Annotated[
    Moment | None,
    Field(description="Start with a time of day, like 2026-12-03T09:30; in time_zone unless it has an offset"),
]
StartDay = Annotated[Moment | None, Field(description="First day of an all-day event, like 2026-12-24")]
EndMoment = Annotated[Moment | None, Field(description="End with a time of day; by default an hour after the start")]
EndDay = Annotated[
    Moment | None,
    Field(description="Last day of an all-day event, included; by default the first day"),
]
TimeZone = Annotated[
    Moment | None, Field(description="Zone like Europe/Berlin for times without an offset; by default the user's")
]
Attendees = Annotated[list[Address] | None, Field(max_length=200, description="Mail addresses of those to invite")]
