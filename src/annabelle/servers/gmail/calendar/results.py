"""Events as the tools show them. Times are in the zone of the user, or in the one the call asked for."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field

from annabelle.servers.gmail.calendar.event import Event, Time
from annabelle.servers.kit import Result

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

    def line(self) -> str:
        """One line that tells one event from another."""
        where = f" ({self.location})" if self.location else ""
        series = ", repeats" if self.series_id or self.recurrence else ""
        off = f", {self.status}" if self.status != "confirmed" else ""
        return f"{self.when()} {self.summary or '(no title)'}{where}{series}{off} [{self.id}]"

    def when(self) -> str:
        if self.all_day:
            first, last = day(datetime.fromisoformat(self.start)), day(datetime.fromisoformat(self.end))
            return f"{first} all day" if self.start == self.end else f"{first} to {last} all day"
        return period(datetime.fromisoformat(self.start), datetime.fromisoformat(self.end))

    def story(self) -> str:
        """Everything a reader of one event wants to know."""
        parts = [self.line(), f"Calendar: {self.calendar_id}"]
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

    def text(self) -> str:
        return self.event.story()


class EventSaved(Result):
    outcome: str = Field(description="created, updated, or unchanged when it was there already")
    event: EventShown

    def text(self) -> str:
        word = "Already there" if self.outcome == "unchanged" else self.outcome.capitalize()
        invited = f" Invited: {', '.join(one.email for one in self.event.attendees)}." if self.event.attendees else ""
        return f"{word}: {self.event.line()}{invited}"


def show(event: Event, zone: ZoneInfo, *, description: str | None = None, rest: str | None = None) -> EventShown:
    """`description` is what to show of it; without one, how it begins."""
    own = event.span.start.tzinfo if isinstance(event.span.start, datetime) else None
    other = own.key if isinstance(own, ZoneInfo) and own.key != zone.key else None
    begins = event.description[:_SNIPPET_CHARS] + ("…" if len(event.description) > _SNIPPET_CHARS else "")
    return EventShown(
        id=event.id,
        calendar_id=event.calendar_id,
        summary=event.summary,
        start=_iso(event.span.start, zone),
        end=_iso(event.span.last_day, zone),
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


def day(moment: datetime) -> str:
    return f"{moment:%a} {moment.day} {moment:%b %Y}"


def period(start: datetime, end: datetime) -> str:
    last = f"{end:%H:%M}" if start.date() == end.date() else f"{day(end)} {end:%H:%M}"
    return f"{day(start)} {start:%H:%M}–{last}"


def _iso(time: Time, zone: ZoneInfo) -> str:
    return time.astimezone(zone).isoformat() if isinstance(time, datetime) else time.isoformat()
