"""The calendars of a Google account behind the tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import quote
from zoneinfo import ZoneInfo

from annabelle.core.errors import Conflict, InvalidArguments, NotFound
from annabelle.core.tools import JsonObject
from annabelle.servers.gmail.calendar.event import Calendar, Event
from annabelle.servers.gmail.calendar.google_event import objects, read_calendar, read_event, write_change, write_draft
from annabelle.servers.gmail.calendar.service import Change, Draft, EventPage, Window, gone

_API = "/calendar/v3"
_MAX_CALENDARS = 250


class GoogleApi(Protocol):
    """Requests in the name of the connected account."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, object] | None = None,
        json: object | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool | None = None,
    ) -> JsonObject: ...


class GoogleCalendar:
    """Google unrolls repeating events itself, and tells the invited of every change."""

    def __init__(self, api: GoogleApi, zone: ZoneInfo) -> None:
        self._api, self._zone = api, zone

    async def calendars(self) -> list[Calendar]:
        found = await self._api.request("GET", f"{_API}/users/me/calendarList", params={"maxResults": _MAX_CALENDARS})
        return [read_calendar(entry) for entry in objects(found, "items")]

    async def events(self, calendar_id: str, window: Window, size: int, page_token: str | None) -> EventPage:
        params: dict[str, object] = {
            "singleEvents": True,
            "orderBy": "startTime",
            "timeMin": window.start.isoformat(),
            "timeMax": window.end.isoformat(),
            "maxResults": size,
            "timeZone": self._zone.key,
        }
        if window.query:
            params["q"] = window.query
        if page_token:
            params["pageToken"] = page_token
        found = await self._api.request("GET", _events(calendar_id), params=params)
        events: list[Event] = []
        unreadable = 0
        for entry in objects(found, "items"):
            try:
                events.append(read_event(entry, calendar_id, self._zone))
            except ValueError:
                unreadable += 1
        token = found.get("nextPageToken")
        return EventPage(events, token if isinstance(token, str) else None, unreadable)

    async def get(self, calendar_id: str, event_id: str) -> Event:
        event = await self._read(calendar_id, event_id)
        if event.status == "cancelled":
            raise gone()
        return event

    async def create(self, calendar_id: str, draft: Draft) -> tuple[Event, bool]:
        # With an id of our own a request can be repeated: the second finds the first one's event.
        body = {**write_draft(draft), "id": draft.key}
        params = {"sendUpdates": "all" if draft.attendees else "none"}
        try:
            made = await self._api.request("POST", _events(calendar_id), params=params, json=body, repeatable=True)
        except Conflict:
            return await self._read(calendar_id, draft.key), False
        return read_event(made, calendar_id, self._zone), True

    async def update(self, event: Event, change: Change) -> Event:
        if change.answer is not None and event.my_answer is None:
            raise InvalidArguments(
                "The user is not invited to this event, so there is nothing to answer.", field="response_status"
            )
        path = _events(event.calendar_id, event.id)
        # Of the attendees Google wants all, with everything it knows of each, or the rest is gone.
        listed = objects(await self._api.request("GET", path), "attendees") if _touches_attendees(change) else []
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
        path = _events(calendar_id, event_id)
        try:
            await self._api.request("DELETE", path, params={"sendUpdates": "all"})
        except NotFound:
            # As after a request whose answer was lost: what is deleted already is what was asked for.
            if (await self._api.request("GET", path)).get("status") != "cancelled":
                raise

    async def _read(self, calendar_id: str, event_id: str) -> Event:
        try:
            found = await self._api.request("GET", _events(calendar_id, event_id))
            return read_event(found, calendar_id, self._zone)
        except (NotFound, ValueError) as error:
            raise gone() from error


def _touches_attendees(change: Change) -> bool:
    return change.attendees is not None or change.answer is not None


def _events(calendar_id: str, event_id: str | None = None) -> str:
    """Whatever an id has in it, it stays one part of the path."""
    path = f"{_API}/calendars/{_part(calendar_id)}/events"
    return path if event_id is None else f"{path}/{_part(event_id)}"


def _part(given: str) -> str:
    if given in (".", ".."):
        raise gone()
    return quote(given, safe="")
