"""Converts between iCalendar components and events."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Protocol, cast
from zoneinfo import ZoneInfo

from annabelle.servers.kit import deferred_module
from annabelle.servers.mail_calendar.calendar.event import (
    Attendee,
    CalendarEvent,
    DayOrTime,
    EventChange,
    EventDraft,
    EventSpan,
    InvitationAnswer,
    Reminder,
    ReminderMethod,
    not_invited,
)
from annabelle.servers.mail_calendar.calendar.times import add_length, to_zone

if TYPE_CHECKING:
    import icalendar
    import recurring_ical_events
else:
    icalendar = deferred_module("icalendar")
    recurring_ical_events = deferred_module("recurring_ical_events")


UNREADABLE = (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError)
"""What the libraries raise on malformed calendar data."""

_FOLD = re.compile(r"\r?\n[ \t]")
_ZONES = re.compile(r"^BEGIN:VTIMEZONE\s*$.*?^END:VTIMEZONE\s*$", re.IGNORECASE | re.MULTILINE | re.DOTALL)
_RULES = re.compile(r"^RRULE[^:\n]*:([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_ZONE_RULE = re.compile(
    r"(?=.*FREQ=YEARLY)(?!.*FREQ=.*FREQ=)(?!.*BY(?:HOUR|MINUTE|SECOND|SETPOS|WEEKNO|YEARDAY))(?!.*INTERVAL=0).*",
    re.IGNORECASE,
)


class ICalComponent(Protocol):
    """A VCALENDAR, VEVENT or VALARM with properties and subcomponents."""

    subcomponents: list[ICalComponent]
    exdates: list[DayOrTime]
    """Only in a VEVENT."""

    def add(self, name: str, value: object) -> None: ...
    def get(self, name: str) -> object: ...
    def pop(self, name: str, default: object = None) -> object: ...
    def __contains__(self, name: object) -> bool: ...
    def walk(self, name: str) -> list[ICalComponent]: ...
    def add_component(self, component: ICalComponent) -> None: ...
    def add_missing_timezones(self) -> None: ...
    def to_ical(self) -> bytes: ...


def new_calendar() -> ICalComponent:
    calendar = cast("ICalComponent", icalendar.Calendar())
    calendar.add("VERSION", "2.0")
    calendar.add("PRODID", "-//Annabelle//Calendar//EN")
    return calendar


def new_address(email: str) -> object:
    return icalendar.vCalAddress(f"mailto:{email}")


def read_calendar(data: bytes | str) -> ICalComponent:
    """Parse a calendar. Raises one of UNREADABLE on invalid data."""
    _check_zones(data if isinstance(data, str) else data.decode(errors="replace"))
    parsed = icalendar.Calendar.from_ical(data)
    if not isinstance(parsed, icalendar.Calendar):
        raise ValueError("not a calendar")
    return cast("ICalComponent", parsed)


def _check_zones(text: str) -> None:
    """Reject time zones with rules more frequent than yearly: evaluating them while parsing could take forever."""
    for zone in _ZONES.findall(_FOLD.sub("", text)):
        if not all(_ZONE_RULE.fullmatch(rule) for rule in _RULES.findall(zone)):
            raise ValueError("a zone that is none")


def expand_recurrences(calendar: ICalComponent, start: datetime, end: datetime) -> list[ICalComponent]:
    """Events of a period, with recurring ones expanded, each with its RECURRENCE-ID."""
    query = recurring_ical_events.of(cast("icalendar.Calendar", calendar))
    return cast("list[ICalComponent]", query.between(start, end))


def get_time(component: ICalComponent, name: str) -> DayOrTime | None:
    """A day, or a moment that may lack a zone."""
    value = cast("object", getattr(component.get(name), "dt", None))
    return value if isinstance(value, date) else None


def get_values(component: ICalComponent, name: str) -> list[object]:
    """All values of a property that may be repeated."""
    value = component.get(name)
    if value is None:
        return []
    return cast("list[object]", value) if isinstance(value, list) else [value]


def get_text(component: ICalComponent, name: str) -> str:
    values = get_values(component, name)
    return str(values[0]) if values else ""


def get_parameters(value: object) -> dict[str, object]:
    return cast("dict[str, object]", getattr(value, "params", {}))


_ANSWERS: dict[str, InvitationAnswer] = {"ACCEPTED": "accepted", "DECLINED": "declined", "TENTATIVE": "tentative"}
_RECURRENCE = ("RRULE", "RDATE", "EXDATE")


@dataclass(frozen=True, slots=True)
class CalendarOwner:
    """Zone for times without one, and the owner's addresses among attendees."""

    zone: ZoneInfo
    addresses: frozenset[str]


def read_span_of(component: ICalComponent, zone: ZoneInfo) -> EventSpan:
    """Span of an event. Times without a zone are in the user's zone."""
    start = _read_time(component, "DTSTART", zone)
    end = _read_time(component, "DTEND", zone)
    if start is None:
        raise ValueError("an event without a start")
    if end is None:
        length = cast("object", getattr(component.get("DURATION"), "dt", None))
        usual = timedelta(0) if isinstance(start, datetime) else timedelta(days=1)
        end = add_length(start, length if isinstance(length, timedelta) else usual)
    if isinstance(start, datetime) != isinstance(end, datetime):
        raise ValueError("an event with a start and an end of different kinds")
    return EventSpan(start, end)


def read_event(component: ICalComponent, reader: CalendarOwner) -> CalendarEvent:
    """Read an event without its ids and its version, which depend on where it is stored."""
    return CalendarEvent(
        id="",
        calendar_id="",
        summary=get_text(component, "SUMMARY"),
        span=read_span_of(component, reader.zone),
        location=get_text(component, "LOCATION"),
        description=get_text(component, "DESCRIPTION"),
        attendees=tuple(_attendee(entry, reader) for entry in get_values(component, "ATTENDEE")),
        organizer=get_address(component.get("ORGANIZER")),
        recurrence=tuple(_recurrence_lines(component)),
        reminders=tuple(_reminders(component)),
        status=get_text(component, "STATUS").lower() or "confirmed",
        busy=get_text(component, "TRANSP").upper() != "TRANSPARENT",
        link=get_text(component, "URL"),
    )


def new_event(draft: EventDraft, uid: str, me: str) -> ICalComponent:
    component = cast("ICalComponent", icalendar.Event())
    component.add("UID", uid)
    component.add("SUMMARY", draft.summary)
    set_span(component, draft.span)
    for name, value in (("DESCRIPTION", draft.description), ("LOCATION", draft.location)):
        if value:
            component.add(name, value)
    lines = "\r\n".join(("BEGIN:VEVENT", *draft.recurrence, "END:VEVENT", ""))
    rules = cast("ICalComponent", icalendar.Event.from_ical(lines))
    for name in _RECURRENCE:
        for value in get_values(rules, name):
            component.add(name, value)
    _set_attendees(component, draft.attendees, me)
    for reminder in draft.reminders or ():
        component.add_component(_alarm(reminder, draft.summary, me))
    mark_modified(component)
    return component


def change_event(component: ICalComponent, change: EventChange, reader: CalendarOwner, me: str) -> None:
    """Apply the change in place. All other properties stay, including unknown ones."""
    for name, text in change.texts().items():
        component.pop(name, None)
        if text:
            component.add(name, text)
    if change.span is not None:
        set_span(component, change.span)
    if change.attendees is not None:
        _set_attendees(component, change.attendees, me)
    if change.answer is not None:
        mine = [entry for entry in get_values(component, "ATTENDEE") if get_address(entry).lower() in reader.addresses]
        if not mine:
            raise not_invited()
        for entry in mine:
            get_parameters(entry)["PARTSTAT"] = change.answer.upper()
    mark_modified(component, answered_only=change == EventChange(answer=change.answer))


def set_span(component: ICalComponent, span: EventSpan) -> None:
    for name in ("DTSTART", "DTEND", "DURATION"):
        component.pop(name, None)
    component.add("DTSTART", span.start)
    component.add("DTEND", span.end)


def mark_modified(component: ICalComponent, *, answered_only: bool = False) -> None:
    """Mark the event as newer. A response alone does not raise SEQUENCE, which belongs to the organizer."""
    now, number = datetime.now(UTC), get_text(component, "SEQUENCE")
    for name in ("DTSTAMP", "LAST-MODIFIED"):
        component.pop(name, None)
        component.add(name, now)
    if not answered_only:
        component.pop("SEQUENCE", None)
        component.add("SEQUENCE", int(number) + 1 if number.isdecimal() else 0)


def _set_attendees(component: ICalComponent, emails: Iterable[str], me: str) -> None:
    known = {get_address(entry).lower(): entry for entry in get_values(component, "ATTENDEE")}
    component.pop("ATTENDEE", None)
    invited = list(emails)
    for email in invited:
        entry = known.get(email.lower())
        if entry is None:
            entry = new_address(email)
            get_parameters(entry).update({"PARTSTAT": "NEEDS-ACTION", "ROLE": "REQ-PARTICIPANT", "RSVP": "TRUE"})
        component.add("ATTENDEE", entry)
    if invited and "ORGANIZER" not in component:
        component.add("ORGANIZER", new_address(me))


def _alarm(reminder: Reminder, summary: str, me: str) -> ICalComponent:
    alarm = cast("ICalComponent", icalendar.Alarm())
    alarm.add("ACTION", "EMAIL" if reminder.method == "email" else "DISPLAY")
    alarm.add("TRIGGER", -timedelta(minutes=reminder.minutes))
    alarm.add("DESCRIPTION", summary)
    if reminder.method == "email":
        alarm.add("SUMMARY", summary)
        alarm.add("ATTENDEE", new_address(me))
    return alarm


def _reminders(component: ICalComponent) -> Iterable[Reminder]:
    for alarm in component.walk("VALARM"):
        before = cast("object", getattr(alarm.get("TRIGGER"), "dt", None))
        if isinstance(before, timedelta) and before <= timedelta(0):
            method: ReminderMethod = "email" if str(alarm.get("ACTION")).upper() == "EMAIL" else "popup"
            yield Reminder(method, int(-before.total_seconds() // 60))


def _recurrence_lines(component: ICalComponent) -> Iterable[str]:
    for name in _RECURRENCE:
        for value in get_values(component, name):
            yield f"{name}:{cast('ICalComponent', value).to_ical().decode()}"


def _read_time(component: ICalComponent, name: str, zone: ZoneInfo) -> DayOrTime | None:
    value = get_time(component, name)
    return to_zone(value, zone) if isinstance(value, datetime) and value.tzinfo is None else value


def _attendee(entry: object, reader: CalendarOwner) -> Attendee:
    email, given = get_address(entry), get_parameters(entry)
    answer = _ANSWERS.get(str(given.get("PARTSTAT", "")).upper(), "needsAction")
    return Attendee(email, str(given.get("CN", "")), answer, email.lower() in reader.addresses)


def get_address(entry: object) -> str:
    text = "" if entry is None else str(entry)
    return text[7:] if text.lower().startswith("mailto:") else text
