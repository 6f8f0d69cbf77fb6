"""Google Calendar as a calendar service."""

from __future__ import annotations

from datetime import date, datetime
from urllib.parse import quote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from annabelle.core.errors import Conflict, NotFound
from annabelle.core.tools import JsonObject
from annabelle.servers.kit.json_access import get_object, get_objects, get_strings, get_text
from annabelle.servers.mail_calendar.calendar.event import (
    INVITATION_ANSWERS,
    Attendee,
    Calendar,
    CalendarEvent,
    DayOrTime,
    EventChange,
    EventDraft,
    EventPage,
    EventSpan,
    EventWindow,
    InvitationAnswer,
    Reminder,
    event_not_found,
    not_invited,
)
from annabelle.servers.mail_calendar.calendar.times import to_zone
from annabelle.servers.mail_calendar.google_session import GoogleSession

_GOOGLE_ANSWERS: dict[object, InvitationAnswer] = {answer: answer for answer in INVITATION_ANSWERS}


def read_calendar(entry: JsonObject) -> Calendar:
    return Calendar(
        id=get_text(entry, "id"),
        name=get_text(entry, "summaryOverride") or get_text(entry, "summary"),
        primary=entry.get("primary") is True,
        own=entry.get("accessRole") in ("owner", "writer"),
        time_zone=get_text(entry, "timeZone") or None,
        description=get_text(entry, "description"),
    )


def read_event(entry: JsonObject, calendar_id: str, zone: ZoneInfo) -> CalendarEvent:
    """Parse an event. Raises ValueError without a time, as for deleted events."""
    organizer = get_object(entry, "organizer")
    reminders = get_objects(get_object(entry, "reminders"), "overrides")
    return CalendarEvent(
        id=get_text(entry, "id"),
        calendar_id=calendar_id,
        summary=get_text(entry, "summary"),
        span=EventSpan(_read_time(get_object(entry, "start"), zone), _read_time(get_object(entry, "end"), zone)),
        location=get_text(entry, "location"),
        description=get_text(entry, "description"),
        attendees=tuple(_read_attendee(one) for one in get_objects(entry, "attendees")),
        organizer=get_text(organizer, "email"),
        recurrence=get_strings(entry, "recurrence"),
        series_id=get_text(entry, "recurringEventId") or None,
        reminders=tuple(_read_reminder(one) for one in reminders),
        status=get_text(entry, "status") or "confirmed",
        busy=entry.get("transparency") != "transparent",
        link=get_text(entry, "htmlLink"),
        version=get_text(entry, "etag"),
    )


def write_draft(draft: EventDraft) -> JsonObject:
    body: JsonObject = {
        "summary": draft.summary,
        "start": _write_time(draft.span.start),
        "end": _write_time(draft.span.end),
        "description": draft.description,
        "location": draft.location,
        "recurrence": list(draft.recurrence),
        "attendees": [{"email": email} for email in draft.attendees],
    }
    body = {name: value for name, value in body.items() if value or name == "summary"}
    if draft.reminders is not None:
        overrides = [{"method": one.method, "minutes": one.minutes} for one in draft.reminders]
        body["reminders"] = {"useDefault": False, "overrides": overrides}
    return body


def write_change(change: EventChange, attendees: list[JsonObject]) -> JsonObject:
    """Fields to change. `attendees` are the current ones, needed if the change touches them."""
    body: JsonObject = change.texts()
    if change.span is not None:
        # An event has a date or a moment. The other one must be cleared.
        body["start"] = {"date": None, "dateTime": None, "timeZone": None, **_write_time(change.span.start)}
        body["end"] = {"date": None, "dateTime": None, "timeZone": None, **_write_time(change.span.end)}
    if change.attendees is not None or change.answer is not None:
        body["attendees"] = [_with_answer(row, change.answer) for row in _merge_attendees(attendees, change.attendees)]
    return body


def _merge_attendees(attendees: list[JsonObject], emails: tuple[str, ...] | None) -> list[JsonObject]:
    if emails is None:
        return attendees
    known = {get_text(row, "email").lower(): row for row in attendees}
    return [known.get(email.lower(), {"email": email}) for email in emails]


def _with_answer(row: JsonObject, answer: InvitationAnswer | None) -> JsonObject:
    return {**row, "responseStatus": answer} if answer is not None and row.get("self") is True else row


def _write_time(time: DayOrTime) -> JsonObject:
    if isinstance(time, datetime):
        zone = time.tzinfo
        return {"dateTime": time.isoformat(), **({"timeZone": zone.key} if isinstance(zone, ZoneInfo) else {})}
    return {"date": time.isoformat()}


def _read_time(edge: JsonObject, zone: ZoneInfo) -> DayOrTime:
    moment, day = get_text(edge, "dateTime"), get_text(edge, "date")
    if not moment:
        return date.fromisoformat(day)
    try:
        own = ZoneInfo(get_text(edge, "timeZone") or zone.key)
    except (ZoneInfoNotFoundError, ValueError):
        own = zone
    return to_zone(datetime.fromisoformat(moment), own)


def _read_attendee(entry: JsonObject) -> Attendee:
    answer = _GOOGLE_ANSWERS.get(entry.get("responseStatus"), "needsAction")
    return Attendee(get_text(entry, "email"), get_text(entry, "displayName"), answer, entry.get("self") is True)


def _read_reminder(entry: JsonObject) -> Reminder:
    minutes = entry.get("minutes")
    return Reminder("email" if entry.get("method") == "email" else "popup", minutes if isinstance(minutes, int) else 0)


_API = "/calendar/v3"
_MAX_CALENDARS = 250


class GoogleCalendar:
    """Google expands recurring events and notifies attendees itself."""

    def __init__(self, api: GoogleSession, zone: ZoneInfo) -> None:
        self._api, self._zone = api, zone

    async def calendars(self) -> list[Calendar]:
        found = await self._api.request("GET", f"{_API}/users/me/calendarList", params={"maxResults": _MAX_CALENDARS})
        return [read_calendar(entry) for entry in get_objects(found, "items")]

    async def events(self, calendar_id: str, window: EventWindow, size: int, page_token: str | None) -> EventPage:
        params = {
            "singleEvents": True,
            "orderBy": "startTime",
            "timeMin": window.start.isoformat(),
            "timeMax": window.end.isoformat(),
            "maxResults": size,
            "timeZone": self._zone.key,
            "q": window.query or None,
            "pageToken": page_token or None,
        }
        found = await self._api.request("GET", _events_path(calendar_id), params=params)
        events: list[CalendarEvent] = []
        unreadable = 0
        for entry in get_objects(found, "items"):
            try:
                events.append(read_event(entry, calendar_id, self._zone))
            except ValueError:
                unreadable += 1
        return EventPage(events, get_text(found, "nextPageToken") or None, unreadable)

    async def get(self, calendar_id: str, event_id: str) -> CalendarEvent:
        event = await self._read(calendar_id, event_id)
        if event.status == "cancelled":
            raise event_not_found()
        return event

    async def create(self, calendar_id: str, draft: EventDraft) -> tuple[CalendarEvent, bool]:
        # With our own id the request is repeatable: a second one finds the first's event.
        body = {**write_draft(draft), "id": draft.key}
        params = {"sendUpdates": "all" if draft.attendees else "none"}
        try:
            made = await self._api.request("POST", _events_path(calendar_id), params=params, json=body, repeatable=True)
        except Conflict:
            return await self._read(calendar_id, draft.key), False
        return read_event(made, calendar_id, self._zone), True

    async def update(self, event: CalendarEvent, change: EventChange) -> CalendarEvent:
        if change.answer is not None and event.my_answer is None:
            raise not_invited()
        path = _events_path(event.calendar_id, event.id)
        # Google replaces the whole list, so all attendees are sent with all fields.
        listed = get_objects(await self._api.request("GET", path), "attendees") if _touches_attendees(change) else []
        changed = await self._api.request(
            "PATCH",
            path,
            params={"sendUpdates": "all" if event.attendees or change.attendees else "none"},
            json=write_change(change, listed),
            headers={"If-Match": event.version} if event.version else None,
            repeatable=True,
        )
        return read_event(changed, event.calendar_id, self._zone)

    async def delete(self, calendar_id: str, event_id: str) -> None:
        path = _events_path(calendar_id, event_id)
        try:
            await self._api.request("DELETE", path, params={"sendUpdates": "all"})
        except NotFound:
            # The response to an earlier request may have been lost, so a cancelled event counts as deleted.
            if (await self._api.request("GET", path)).get("status") != "cancelled":
                raise

    async def _read(self, calendar_id: str, event_id: str) -> CalendarEvent:
        try:
            found = await self._api.request("GET", _events_path(calendar_id, event_id))
            return read_event(found, calendar_id, self._zone)
        except (NotFound, ValueError) as error:
            raise event_not_found() from error


def _touches_attendees(change: EventChange) -> bool:
    return change.attendees is not None or change.answer is not None


def _events_path(calendar_id: str, event_id: str | None = None) -> str:
    """Quote an id so that it stays one segment of the path."""
    path = f"{_API}/calendars/{_quote_part(calendar_id)}/events"
    return path if event_id is None else f"{path}/{_quote_part(event_id)}"


def _quote_part(given: str) -> str:
    if given in (".", ".."):
        raise event_not_found()
    return quote(given, safe="")
