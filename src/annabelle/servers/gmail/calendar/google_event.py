"""An event as Google writes it, and as the tools know it."""

from __future__ import annotations

from datetime import date, datetime
from typing import cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from annabelle.core.tools import JsonObject
from annabelle.servers.gmail.calendar.event import ANSWERS, Answer, Attendee, Calendar, Event, Reminder, Span, Time
from annabelle.servers.gmail.calendar.service import Change, Draft
from annabelle.servers.gmail.calendar.when import local

_ANSWERS: dict[object, Answer] = {answer: answer for answer in ANSWERS}


def read_calendar(entry: JsonObject) -> Calendar:
    return Calendar(
        id=_text(entry, "id"),
        name=_text(entry, "summaryOverride") or _text(entry, "summary"),
        primary=entry.get("primary") is True,
        own=entry.get("accessRole") in ("owner", "writer"),
        zone=_text(entry, "timeZone"),
        description=_text(entry, "description"),
    )


def read_event(entry: JsonObject, calendar_id: str, zone: ZoneInfo) -> Event:
    """ValueError on one without a time, as Google sends for what was deleted."""
    organizer = _inner(entry, "organizer")
    reminders = objects(_inner(entry, "reminders"), "overrides")
    lines = entry.get("recurrence")
    return Event(
        id=_text(entry, "id"),
        calendar_id=calendar_id,
        summary=_text(entry, "summary"),
        span=Span(_time(_inner(entry, "start"), zone), _time(_inner(entry, "end"), zone)),
        location=_text(entry, "location"),
        description=_text(entry, "description"),
        attendees=tuple(_attendee(one) for one in objects(entry, "attendees")),
        organizer=_text(organizer, "email"),
        recurrence=tuple(str(line) for line in cast("list[object]", lines)) if isinstance(lines, list) else (),
        series_id=_text(entry, "recurringEventId") or None,
        reminders=tuple(_reminder(one) for one in reminders),
        status=_text(entry, "status") or "confirmed",
        busy=entry.get("transparency") != "transparent",
        link=_text(entry, "htmlLink"),
        version=_text(entry, "etag"),
    )


def write_draft(draft: Draft) -> JsonObject:
    body: JsonObject = {
        "summary": draft.summary,
        "start": _edge(draft.span.start),
        "end": _edge(draft.span.end),
        **({"description": draft.description} if draft.description else {}),
        **({"location": draft.location} if draft.location else {}),
        **({"recurrence": list(draft.recurrence)} if draft.recurrence else {}),
        **({"attendees": [{"email": email} for email in draft.attendees]} if draft.attendees else {}),
    }
    if draft.reminders is not None:
        overrides = [{"method": one.method, "minutes": one.minutes} for one in draft.reminders]
        body["reminders"] = {"useDefault": False, "overrides": overrides}
    return body


def write_change(change: Change, attendees: list[JsonObject]) -> JsonObject:
    """Only what is to change. `attendees` are those the event has now, if the change touches them."""
    body: JsonObject = {
        name: value
        for name, value in (
            ("summary", change.summary),
            ("description", change.description),
            ("location", change.location),
        )
        if value is not None
    }
    if change.span is not None:
        # An event has a date or a moment; the other one must be taken away.
        body["start"] = {"date": None, "dateTime": None, "timeZone": None, **_edge(change.span.start)}
        body["end"] = {"date": None, "dateTime": None, "timeZone": None, **_edge(change.span.end)}
    if change.attendees is not None or change.answer is not None:
        body["attendees"] = [_answered(row, change.answer) for row in _invited(attendees, change.attendees)]
    return body


def objects(entry: JsonObject, name: str) -> list[JsonObject]:
    values = entry.get(name)
    if not isinstance(values, list):
        return []
    return [cast("JsonObject", value) for value in cast("list[object]", values) if isinstance(value, dict)]


def _invited(attendees: list[JsonObject], emails: tuple[str, ...] | None) -> list[JsonObject]:
    if emails is None:
        return attendees
    known = {_text(row, "email").lower(): row for row in attendees}
    return [known.get(email.lower(), {"email": email}) for email in emails]


def _answered(row: JsonObject, answer: Answer | None) -> JsonObject:
    return {**row, "responseStatus": answer} if answer is not None and row.get("self") is True else row


def _edge(time: Time) -> JsonObject:
    if isinstance(time, datetime):
        zone = time.tzinfo
        return {"dateTime": time.isoformat(), **({"timeZone": zone.key} if isinstance(zone, ZoneInfo) else {})}
    return {"date": time.isoformat()}


def _time(edge: JsonObject, zone: ZoneInfo) -> Time:
    moment, day = _text(edge, "dateTime"), _text(edge, "date")
    if not moment:
        return date.fromisoformat(day)
    try:
        own = ZoneInfo(_text(edge, "timeZone") or zone.key)
    except (ZoneInfoNotFoundError, ValueError):
        own = zone
    return local(datetime.fromisoformat(moment), own)


def _attendee(entry: JsonObject) -> Attendee:
    answer = _ANSWERS.get(entry.get("responseStatus"), "needsAction")
    return Attendee(_text(entry, "email"), _text(entry, "displayName"), answer, entry.get("self") is True)


def _reminder(entry: JsonObject) -> Reminder:
    minutes = entry.get("minutes")
    return Reminder("email" if entry.get("method") == "email" else "popup", minutes if isinstance(minutes, int) else 0)


def _text(entry: JsonObject, name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def _inner(entry: JsonObject, name: str) -> JsonObject:
    value = entry.get(name)
    return cast("JsonObject", value) if isinstance(value, dict) else {}
