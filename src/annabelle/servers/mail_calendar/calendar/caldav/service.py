"""CalDAV calendars as a calendar service, with discovery."""

from __future__ import annotations

import contextlib
import logging
import urllib.parse
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from datetime import UTC, timedelta
from zoneinfo import ZoneInfo

from annabelle.core.errors import Conflict, InvalidArguments, NotAllowed, NotFound, Unavailable
from annabelle.servers.kit import StopSign, in_thread
from annabelle.servers.kit.pagination import get_page
from annabelle.servers.mail_calendar.calendar.caldav.client import (
    CONNECT,
    DavAccount,
    DavClient,
    DavClientFactory,
    DavResponsePart,
    format_event_query,
    format_propfind,
    join_url,
)
from annabelle.servers.mail_calendar.calendar.caldav.icalendar_event import UNREADABLE, CalendarOwner
from annabelle.servers.mail_calendar.calendar.caldav.resource import CalendarResource, new_resource, split_id
from annabelle.servers.mail_calendar.calendar.event import (
    PRIMARY,
    Calendar,
    CalendarEvent,
    EventChange,
    EventDraft,
    EventPage,
    EventWindow,
    event_not_found,
)
from annabelle.servers.mail_calendar.calendar.times import to_utc
from annabelle.servers.mail_calendar.config import ServerAccess

_WELL_KNOWN = "/.well-known/caldav"
_WHO = format_propfind("d:current-user-principal", "c:calendar-home-set", "d:resourcetype")
_WHERE = format_propfind("c:calendar-home-set")
_WHAT = format_propfind(
    "d:resourcetype",
    "d:displayname",
    "c:calendar-description",
    "c:supported-calendar-component-set",
    "d:current-user-privilege-set",
)


@dataclass(frozen=True, slots=True)
class CalendarCollection:
    calendar: Calendar
    url: str


async def discover(dav: DavClient, account: DavAccount) -> list[CalendarCollection]:
    """All calendars with events, the user's main one first."""
    home = await _find_home(dav, account.url)
    parts = [part for part in await dav.query("PROPFIND", home, _WHAT, depth=1) if _holds_events(part)]
    if not parts:
        raise Unavailable("The calendar server has no calendar for events.", hint="Make one there first.")
    given = account.url.rstrip("/")
    # The user's URL may be that of one calendar, which is then the main one.
    parts.sort(key=lambda part: part.url.rstrip("/") != given)
    names = [_last_segment(part.url) for part in parts]
    return [
        CalendarCollection(
            Calendar(
                id=name if names.count(name) == 1 else urllib.parse.urlsplit(part.url).path,
                name=part.get_text("d:displayname") or urllib.parse.unquote(name),
                primary=index == 0,
                own="{DAV:}current-user-privilege-set" not in part.found
                or part.has("d:current-user-privilege-set", "d:write", "d:write-content", "d:all"),
                description=part.get_text("c:calendar-description"),
            ),
            part.url if part.url.endswith("/") else f"{part.url}/",
        )
        for index, (part, name) in enumerate(zip(parts, names, strict=True))
    ]


async def _find_home(dav: DavClient, url: str) -> str:
    for start in (url, join_url(url, _WELL_KNOWN)):
        try:
            parts = await dav.query("PROPFIND", start, _WHO)
        except (NotFound, NotAllowed):
            continue  # many servers keep nothing at their root
        for part in parts:
            home = part.get_link("c:calendar-home-set")
            principal = part.get_link("d:current-user-principal")
            if home is None and principal is not None:
                homes = [
                    found.get_link("c:calendar-home-set") for found in await dav.query("PROPFIND", principal, _WHERE)
                ]
                home = next((found for found in homes if found), None)
            if home is not None:
                return home
    raise Unavailable("There are no calendars at the calendar server's address.", hint=CONNECT)


def _holds_events(part: DavResponsePart) -> bool:
    kinds = part.get_names("c:supported-calendar-component-set")
    return part.has("d:resourcetype", "c:calendar") and (not kinds or "VEVENT" in kinds)


def _last_segment(url: str) -> str:
    return urllib.parse.urlsplit(url).path.rstrip("/").rsplit("/", 1)[-1]


_log = logging.getLogger(__name__)
_MARGIN = timedelta(days=1)
"""The server does not know the user's zone, so queries are widened for days and times without one."""

_MAX_EVENTS = 20_000
_TRIES = 5


class CalDavService:
    """Changes apply only to the version that was read, so that no concurrent change is lost."""

    def __init__(self, account: DavAccount, zone: ZoneInfo, access: ServerAccess) -> None:
        self._account, self._clients = account, DavClientFactory(account, access)
        addresses = {account.address.lower(), account.username.lower()}
        self._reader = CalendarOwner(zone, frozenset(address for address in addresses if "@" in address))
        self._found: list[CalendarCollection] = []

    async def calendars(self) -> list[Calendar]:
        async with self._open() as dav:
            self._found = await discover(dav, self._account)
        return [collection.calendar for collection in self._found]

    async def events(self, calendar_id: str, window: EventWindow, size: int, page_token: str | None) -> EventPage:
        async with self._open() as dav:
            collection = await self._collection(dav, calendar_id)
            question = format_event_query(window.start - _MARGIN, window.end + _MARGIN)
            parts = await dav.query("REPORT", collection.url, question, depth=1)
        events, unreadable = await in_thread(lambda stop: self._expand(collection, parts, window, stop))
        page = get_page(events, page_token, size)
        return EventPage(page.items, page.next_page, unreadable)

    async def get(self, calendar_id: str, event_id: str) -> CalendarEvent:
        name, instance = split_id(event_id)
        async with self._open() as dav:
            return await self._event(dav, await self._collection(dav, calendar_id), name, instance)

    async def create(self, calendar_id: str, draft: EventDraft) -> tuple[CalendarEvent, bool]:
        async with self._open() as dav:
            collection = await self._collection(dav, calendar_id)
            name = f"{draft.key}.ics"
            data = new_resource(draft, self._account.address)
            try:
                await dav.put(_resource_url(collection, name), data, {"If-None-Match": "*"})
                new = True
            except Conflict:
                new = False
            return await self._event(dav, collection, name, None), new

    async def update(self, event: CalendarEvent, change: EventChange) -> CalendarEvent:
        name, instance = split_id(event.id)
        async with self._open() as dav:
            collection = await self._collection(dav, event.calendar_id)
            resource = await self._read(dav, collection, name)
            if resource.version != event.version:
                raise Conflict("The event was changed by somebody else at the same time.", hint="Look at it again.")
            with _explain_unreadable():
                resource.apply_change(instance, change, self._account.address)
                data = resource.to_bytes()
            await dav.put(_resource_url(collection, name), data, resource.if_match_header)
            return await self._event(dav, collection, name, instance)

    async def delete(self, calendar_id: str, event_id: str) -> None:
        name, instance = split_id(event_id)
        async with self._open() as dav:
            collection = await self._collection(dav, calendar_id)
            if instance is None:
                await dav.delete(_resource_url(collection, name), {})
                return
            tries = _TRIES
            while True:
                tries -= 1
                try:
                    await self._exclude(dav, collection, name, instance)
                    return
                except Conflict:
                    if not tries:
                        raise

    async def _exclude(self, dav: DavClient, collection: CalendarCollection, name: str, instance: str) -> None:
        resource = await self._read(dav, collection, name)
        with _explain_unreadable():
            resource.exclude(instance)
            data = resource.to_bytes()
        if resource.empty:
            await dav.delete(_resource_url(collection, name), resource.if_match_header)
        else:
            await dav.put(_resource_url(collection, name), data, resource.if_match_header)

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncGenerator[DavClient]:
        """Open a session. If something is not found, calendars may have moved and are discovered again."""
        try:
            async with self._clients.connect() as dav:
                yield dav
        except NotFound:
            self._found = []
            raise

    async def _collection(self, dav: DavClient, calendar_id: str) -> CalendarCollection:
        """Find a calendar by id or name. If it is unknown, discover calendars again."""
        found = _find_collection(self._found, calendar_id)
        if found is None:
            self._found = await discover(dav, self._account)
            found = _find_collection(self._found, calendar_id)
        if found is None:
            raise NotFound(
                f"There is no calendar {calendar_id[:60]!r}.",
                hint=f"There are: {', '.join(entry.calendar.id for entry in self._found[:20])}.",
            )
        return found

    async def _read(self, dav: DavClient, collection: CalendarCollection, name: str) -> CalendarResource:
        try:
            reply = await dav.get(_resource_url(collection, name))
        except NotFound as error:
            raise event_not_found() from error
        with _explain_unreadable():
            return CalendarResource(collection.calendar.id, name, reply.etag, reply.body, self._reader)

    async def _event(
        self, dav: DavClient, collection: CalendarCollection, name: str, instance: str | None
    ) -> CalendarEvent:
        resource = await self._read(dav, collection, name)
        with _explain_unreadable():
            return resource.event(instance)

    def _expand(
        self, collection: CalendarCollection, parts: list[DavResponsePart], window: EventWindow, stop: StopSign
    ) -> tuple[list[CalendarEvent], int]:
        events: list[CalendarEvent] = []
        unreadable = 0
        for part in parts:
            stop.check()
            name = urllib.parse.urlsplit(part.url).path.rsplit("/", 1)[-1]
            try:
                data, version = part.get_text("c:calendar-data"), part.get_text("d:getetag")
                resource = CalendarResource(collection.calendar.id, name, version, data, self._reader)
                found = resource.expand_between(window.start - _MARGIN, window.end + _MARGIN)
            except UNREADABLE as error:
                unreadable += 1
                _log.warning("An event of %s can not be read: %s", collection.calendar.id, type(error).__name__)
                continue
            events += [event for event in found if _is_in_window(event, window, self._reader.zone)]
            if len(events) > _MAX_EVENTS:
                raise InvalidArguments(
                    "There are too many events in this time.", hint="Ask for less.", field="time_max"
                )
        events.sort(key=lambda event: (to_utc(event.span.start, self._reader.zone), event.id))
        return events, unreadable


@contextlib.contextmanager
def _explain_unreadable() -> Generator[None]:
    """Report malformed calendar data as Unavailable."""
    try:
        yield
    except UNREADABLE as error:
        raise Unavailable("The event is written in a way that can not be read.") from error


def _find_collection(collections: list[CalendarCollection], calendar_id: str) -> CalendarCollection | None:
    if calendar_id == PRIMARY:
        return next((entry for entry in collections if entry.calendar.primary), None)
    by_id = next((entry for entry in collections if entry.calendar.id == calendar_id), None)
    by_name = [entry for entry in collections if entry.calendar.name.casefold() == calendar_id.casefold()]
    return by_id or (by_name[0] if len(by_name) == 1 else None)


def _resource_url(collection: CalendarCollection, name: str) -> str:
    """URL of a resource. Quoting keeps any name inside its calendar."""
    return f"{collection.url}{urllib.parse.quote(urllib.parse.unquote(name), safe='')}"


def _is_in_window(event: CalendarEvent, window: EventWindow, zone: ZoneInfo) -> bool:
    start, end = to_utc(event.span.start, zone), to_utc(event.span.end, zone)
    opens, closes = window.start.astimezone(UTC), window.end.astimezone(UTC)
    if not (start < closes and (end > opens or (start == end and start >= opens))):
        return False
    said = " ".join((event.summary, event.location, event.description, *(one.email for one in event.attendees)))
    return all(word in said.casefold() for word in window.query.casefold().split())
