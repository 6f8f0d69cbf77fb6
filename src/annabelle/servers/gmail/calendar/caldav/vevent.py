"""An event as iCalendar writes it, and as the tools know it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast
from zoneinfo import ZoneInfo

from annabelle.core.errors import InvalidArguments
from annabelle.servers.gmail.calendar.caldav.component import (
    Component,
    line_of,
    many,
    new_address,
    new_valarm,
    new_vevent,
    parameters_of,
    read_vevent,
    text_of,
    time_of,
)
from annabelle.servers.gmail.calendar.event import Answer, Attendee, Event, Reminder, ReminderMethod, Span, Time
from annabelle.servers.gmail.calendar.service import Change, Draft
from annabelle.servers.gmail.calendar.when import later, local

_ANSWERS: dict[str, Answer] = {"ACCEPTED": "accepted", "DECLINED": "declined", "TENTATIVE": "tentative"}
_RECURRENCE = ("RRULE", "RDATE", "EXDATE")


@dataclass(frozen=True, slots=True)
class Reader:
    """Whose calendar it is: their zone for times without one, their addresses to know them among the attendees."""

    zone: ZoneInfo
    addresses: frozenset[str]


def span_of(component: Component, zone: ZoneInfo) -> Span:
    """When it is. Times without a zone are meant wherever the user is."""
    start = _time(component, "DTSTART", zone)
    end = _time(component, "DTEND", zone)
    if start is None:
        raise ValueError("an event without a start")
    if end is None:
        length = cast("object", getattr(component.get("DURATION"), "dt", None))
        usual = timedelta(0) if isinstance(start, datetime) else timedelta(days=1)
        end = later(start, length if isinstance(length, timedelta) else usual)
    if isinstance(start, datetime) != isinstance(end, datetime):
        raise ValueError("an event with a start and an end of different kinds")
    return Span(start, end)


def read_event(component: Component, reader: Reader, **ids: str | None) -> Event:
    """`ids` are what only the place of an event tells: id, calendar_id, series_id, version."""
    return Event(
        id=ids.get("id") or "",
        calendar_id=ids.get("calendar_id") or "",
        series_id=ids.get("series_id"),
        version=ids.get("version") or "",
        summary=text_of(component, "SUMMARY"),
        span=span_of(component, reader.zone),
        location=text_of(component, "LOCATION"),
        description=text_of(component, "DESCRIPTION"),
        attendees=tuple(_attendee(entry, reader) for entry in many(component, "ATTENDEE")),
        organizer=_address(component.get("ORGANIZER")),
        recurrence=tuple(_lines(component)),
        reminders=tuple(_reminders(component)),
        status=text_of(component, "STATUS").lower() or "confirmed",
        busy=text_of(component, "TRANSP").upper() != "TRANSPARENT",
        link=text_of(component, "URL"),
    )


def new_event(draft: Draft, uid: str, me: str) -> Component:
    """The component of an event that is to be."""
    component = new_vevent()
    component.add("UID", uid)
    component.add("SUMMARY", draft.summary)
    put_span(component, draft.span)
    for name, value in (("DESCRIPTION", draft.description), ("LOCATION", draft.location)):
        if value:
            component.add(name, value)
    rules = read_vevent(draft.recurrence)
    for name in _RECURRENCE:
        for value in many(rules, name):
            component.add(name, value)
    _invite(component, draft.attendees, me)
    for reminder in draft.reminders or ():
        component.add_component(_alarm(reminder, draft.summary, me))
    touch(component)
    return component


def change_event(component: Component, change: Change, reader: Reader, me: str) -> None:
    """Make the change in place; what it does not name stays, also what we know nothing of."""
    for name, value in (
        ("SUMMARY", change.summary),
        ("DESCRIPTION", change.description),
        ("LOCATION", change.location),
    ):
        if value is not None:
            component.pop(name, None)
            if value:
                component.add(name, value)
    if change.span is not None:
        put_span(component, change.span)
    if change.attendees is not None:
        _invite(component, change.attendees, me)
    if change.answer is not None:
        mine = [entry for entry in many(component, "ATTENDEE") if _address(entry).lower() in reader.addresses]
        if not mine:
            raise InvalidArguments(
                "The user is not invited to this event, so there is nothing to answer.", field="response_status"
            )
        for entry in mine:
            parameters_of(entry)["PARTSTAT"] = change.answer.upper()
    touch(component, answered_only=change == Change(answer=change.answer))


def put_span(component: Component, span: Span) -> None:
    for name in ("DTSTART", "DTEND", "DURATION"):
        component.pop(name, None)
    component.add("DTSTART", span.start)
    component.add("DTEND", span.end)


def touch(component: Component, *, answered_only: bool = False) -> None:
    """Tell other programs that this is newer than what they have. An answer alone makes no new version of an event:
    to its organizer it would be one that they never made."""
    now, number = datetime.now(UTC), text_of(component, "SEQUENCE")
    for name in ("DTSTAMP", "LAST-MODIFIED"):
        component.pop(name, None)
        component.add(name, now)
    if not answered_only:
        component.pop("SEQUENCE", None)
        component.add("SEQUENCE", int(number) + 1 if number.isdecimal() else 0)


def _invite(component: Component, emails: Iterable[str], me: str) -> None:
    known = {_address(entry).lower(): entry for entry in many(component, "ATTENDEE")}
    component.pop("ATTENDEE", None)
    invited = list(emails)
    for email in invited:
        entry = known.get(email.lower())
        if entry is None:
            entry = new_address(email)
            parameters_of(entry).update({"PARTSTAT": "NEEDS-ACTION", "ROLE": "REQ-PARTICIPANT", "RSVP": "TRUE"})
        component.add("ATTENDEE", entry)
    if invited and "ORGANIZER" not in component:
        component.add("ORGANIZER", new_address(me))


def _alarm(reminder: Reminder, summary: str, me: str) -> Component:
    alarm = new_valarm()
    alarm.add("ACTION", "EMAIL" if reminder.method == "email" else "DISPLAY")
    alarm.add("TRIGGER", -timedelta(minutes=reminder.minutes))
    alarm.add("DESCRIPTION", summary)
    if reminder.method == "email":
        alarm.add("SUMMARY", summary)
        alarm.add("ATTENDEE", new_address(me))
    return alarm


def _reminders(component: Component) -> Iterable[Reminder]:
    for alarm in component.walk("VALARM"):
        before = cast("object", getattr(alarm.get("TRIGGER"), "dt", None))
        if isinstance(before, timedelta) and before <= timedelta(0):
            method: ReminderMethod = "email" if str(alarm.get("ACTION")).upper() == "EMAIL" else "popup"
            yield Reminder(method, int(-before.total_seconds() // 60))


def _lines(component: Component) -> Iterable[str]:
    for name in _RECURRENCE:
        for value in many(component, name):
            yield f"{name}:{line_of(value)}"


def _time(component: Component, name: str, zone: ZoneInfo) -> Time | None:
    value = time_of(component, name)
    return local(value, zone) if isinstance(value, datetime) and value.tzinfo is None else value


def _attendee(entry: object, reader: Reader) -> Attendee:
    email, given = _address(entry), parameters_of(entry)
    answer = _ANSWERS.get(str(given.get("PARTSTAT", "")).upper(), "needsAction")
    return Attendee(email, str(given.get("CN", "")), answer, email.lower() in reader.addresses)


def _address(entry: object) -> str:
    text = "" if entry is None else str(entry)
    return text[7:] if text.lower().startswith("mailto:") else text
