"""The calendars of a CalDAV account behind the tools."""

from __future__ import annotations

import contextlib
import logging
import urllib.parse
from collections.abc import AsyncGenerator, Generator
from datetime import UTC, timedelta
from zoneinfo import ZoneInfo

from annabelle.core.errors import Conflict, InvalidArguments, NotFound, Unavailable
from annabelle.servers.gmail.calendar.caldav.component import UNREADABLE
from annabelle.servers.gmail.calendar.caldav.dav import Dav, DavAccount, DavDoor
from annabelle.servers.gmail.calendar.caldav.discovery import Collection, discover
from annabelle.servers.gmail.calendar.caldav.multistatus import Part, events_between
from annabelle.servers.gmail.calendar.caldav.series import Resource, new_resource, split_id
from annabelle.servers.gmail.calendar.caldav.vevent import Reader
from annabelle.servers.gmail.calendar.event import Calendar, Event
from annabelle.servers.gmail.calendar.service import PRIMARY, Change, Draft, EventPage, Window, gone
from annabelle.servers.gmail.calendar.when import moment_of
from annabelle.servers.gmail.reach import Reach
from annabelle.servers.kit import StopSign, in_thread
from annabelle.servers.kit.paging import page_of

_log = logging.getLogger(__name__)
_MARGIN = timedelta(days=1)
"""A server does not know the user's zone, so days and times without one are asked for a little further around."""

_MAX_EVENTS = 20_000
_TRIES = 5


class CalDav:
    """Every change is made on exactly the version that was read, so that nobody's change is lost."""

    def __init__(self, account: DavAccount, zone: ZoneInfo, reach: Reach) -> None:
        self._account, self._door = account, DavDoor(account, reach)
        addresses = {account.address.lower(), account.username.lower()}
        self._reader = Reader(zone, frozenset(address for address in addresses if "@" in address))
        self._found: list[Collection] = []

    async def calendars(self) -> list[Calendar]:
        async with self._open() as dav:
            self._found = await discover(dav, self._account)
        return [collection.calendar for collection in self._found]

    async def events(self, calendar_id: str, window: Window, size: int, page_token: str | None) -> EventPage:
        async with self._open() as dav:
            collection = await self._collection(dav, calendar_id)
            question = events_between(window.start - _MARGIN, window.end + _MARGIN)
            parts = await dav.ask("REPORT", collection.url, question, depth=1)
        events, unreadable = await in_thread(lambda stop: self._expand(collection, parts, window, stop))
        page = page_of(events, page_token, size)
        return EventPage(page.items, page.next_page, unreadable)

    async def get(self, calendar_id: str, event_id: str) -> Event:
        name, instance = split_id(event_id)
        async with self._open() as dav:
            return await self._event(dav, await self._collection(dav, calendar_id), name, instance)

    async def create(self, calendar_id: str, draft: Draft) -> tuple[Event, bool]:
        async with self._open() as dav:
            collection = await self._collection(dav, calendar_id)
            name = f"{draft.key}.ics"
            data = new_resource(draft, self._account.address)
            try:
                await dav.put(_place(collection, name), data, {"If-None-Match": "*"})
                new = True
            except Conflict:
                new = False
            return await self._event(dav, collection, name, None), new

    async def update(self, event: Event, change: Change) -> Event:
        name, instance = split_id(event.id)
        async with self._open() as dav:
            collection = await self._collection(dav, event.calendar_id)
            resource = await self._read(dav, collection, name)
            if resource.version != event.version:
                raise Conflict("The event was changed by somebody else at the same time.", hint="Look at it again.")
            with _readable():
                resource.change(instance, change, self._account.address)
                data = resource.data()
            await dav.put(_place(collection, name), data, resource.unchanged)
            return await self._event(dav, collection, name, instance)

    async def delete(self, calendar_id: str, event_id: str) -> None:
        name, instance = split_id(event_id)
        async with self._open() as dav:
            collection = await self._collection(dav, calendar_id)
            if instance is None:
                await dav.delete(_place(collection, name), {})
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

    async def _exclude(self, dav: Dav, collection: Collection, name: str, instance: str) -> None:
        resource = await self._read(dav, collection, name)
        with _readable():
            resource.exclude(instance)
            data = resource.data()
        if resource.empty:
            await dav.delete(_place(collection, name), resource.unchanged)
        else:
            await dav.put(_place(collection, name), data, resource.unchanged)

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncGenerator[Dav]:
        """A conversation. If something is not found in it, calendars may have moved: they are looked for anew."""
        try:
            async with self._door.open() as dav:
                yield dav
        except NotFound:
            self._found = []
            raise

    async def _collection(self, dav: Dav, calendar_id: str) -> Collection:
        """The calendar of an id or, because people say names, of a name. Looked for anew if it is not known."""
        found = _named(self._found, calendar_id)
        if found is None:
            self._found = await discover(dav, self._account)
            found = _named(self._found, calendar_id)
        if found is None:
            raise NotFound(
                f"There is no calendar {calendar_id[:60]!r}.",
                hint=f"There are: {', '.join(entry.calendar.id for entry in self._found[:20])}.",
            )
        return found

    async def _read(self, dav: Dav, collection: Collection, name: str) -> Resource:
        try:
            reply = await dav.get(_place(collection, name))
        except NotFound as error:
            raise gone() from error
        with _readable():
            return Resource(collection.calendar.id, name, reply.etag, reply.body, self._reader)

    async def _event(self, dav: Dav, collection: Collection, name: str, instance: str | None) -> Event:
        resource = await self._read(dav, collection, name)
        with _readable():
            return resource.event(instance)

    def _expand(
        self, collection: Collection, parts: list[Part], window: Window, stop: StopSign
    ) -> tuple[list[Event], int]:
        events: list[Event] = []
        unreadable = 0
        for part in parts:
            stop.check()
            name = urllib.parse.urlsplit(part.url).path.rsplit("/", 1)[-1]
            try:
                data, version = part.text("c:calendar-data"), part.text("d:getetag")
                resource = Resource(collection.calendar.id, name, version, data, self._reader)
                found = resource.between(window.start - _MARGIN, window.end + _MARGIN)
            except UNREADABLE as error:
                unreadable += 1
                _log.warning("An event of %s can not be read: %s", collection.calendar.id, type(error).__name__)
                continue
            events += [event for event in found if _takes_place(event, window, self._reader.zone)]
            if len(events) > _MAX_EVENTS:
                raise InvalidArguments(
                    "There are too many events in this time.", hint="Ask for less.", field="time_max"
                )
        events.sort(key=lambda event: (moment_of(event.span.start, self._reader.zone), event.id))
        return events, unreadable


@contextlib.contextmanager
def _readable() -> Generator[None]:
    """What a careless server wrote is its fault, and said to be."""
    try:
        yield
    except UNREADABLE as error:
        raise Unavailable("The event is written in a way that can not be read.") from error


def _named(collections: list[Collection], calendar_id: str) -> Collection | None:
    if calendar_id == PRIMARY:
        return next((entry for entry in collections if entry.calendar.primary), None)
    by_id = next((entry for entry in collections if entry.calendar.id == calendar_id), None)
    by_name = [entry for entry in collections if entry.calendar.name.casefold() == calendar_id.casefold()]
    return by_id or (by_name[0] if len(by_name) == 1 else None)


def _place(collection: Collection, name: str) -> str:
    """The address of a resource; whatever a name has in it, it stays in its calendar."""
    return f"{collection.url}{urllib.parse.quote(urllib.parse.unquote(name), safe='')}"


def _takes_place(event: Event, window: Window, zone: ZoneInfo) -> bool:
    start, end = moment_of(event.span.start, zone), moment_of(event.span.end, zone)
    opens, closes = window.start.astimezone(UTC), window.end.astimezone(UTC)
    if not (start < closes and (end > opens or (start == end and start >= opens))):
        return False
    said = " ".join((event.summary, event.location, event.description, *(one.email for one in event.attendees)))
    return all(word in said.casefold() for word in window.query.casefold().split())
