"""Stores turn events in batches, then sends them to live listeners as server-sent events (THR-04)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sqlalchemy import Connection

from annabelle.core.errors import AnnabelleError
from annabelle.core.messages import StoredEvent, TurnEvent
from annabelle.store import threads as stored
from annabelle.store.database import Database

_QUEUE_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """An event for everyone who reads it, encoded once for all of them."""

    seq: int
    line: bytes

    @classmethod
    def from_stored(cls, event: StoredEvent) -> LiveEvent:
        return cls(event.seq, encode_sse(event))


def encode_sse(event: StoredEvent) -> bytes:
    """Encodes an event for server-sent events. JSON has no bare line feed, so one data line is enough."""
    return f"id: {event.seq}\nevent: {event.type}\ndata: {event.model_dump_json()}\n\n".encode()


class EventListener:
    """One reader's queue. When it is full it is dropped, and the reader catches up from the store."""

    def __init__(self, user_id: str, thread_id: str | None, token_hash: str = "", limit: int = _QUEUE_LIMIT) -> None:
        self.wanted, self.token_hash, self._limit = (user_id, thread_id), token_hash, limit
        self._waiting: deque[LiveEvent] = deque()
        self._news = asyncio.Event()
        self.fell_behind = False
        self.closed = False
        self.revoked = False

    def push(self, told: LiveEvent) -> None:
        if self.fell_behind:
            return
        if len(self._waiting) >= self._limit:
            self._waiting.clear()
            self.fell_behind = True
        else:
            self._waiting.append(told)
        self._news.set()

    def restart_if_behind(self) -> bool:
        """Start queueing again after the queue was dropped. Returns whether it was."""
        behind, self.fell_behind = self.fell_behind, False
        return behind

    def close(self) -> None:
        self.closed = True
        self._news.set()

    def cut_off(self) -> None:
        """Close it, with nothing more to read."""
        self._waiting.clear()
        self.fell_behind = True
        self.revoked = True
        self.close()

    async def wait(self, timeout: float) -> bool:
        """Returns False if nothing arrived in time."""
        try:
            async with asyncio.timeout(timeout):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def drain(self) -> list[LiveEvent]:
        taken = list(self._waiting)
        self._waiting.clear()
        if not self.closed:
            self._news.clear()
        return taken


class EventFanout:
    def __init__(self) -> None:
        # By user and thread, or None for all threads, so that an event costs nothing for those who do not read it.
        self._listeners: dict[tuple[str, str | None], set[EventListener]] = {}
        self._closed = False

    def listen(self, user_id: str, thread_id: str | None = None, token_hash: str = "") -> EventListener:
        listener = EventListener(user_id, thread_id, token_hash)
        if self._closed:
            listener.close()
        self._listeners.setdefault(listener.wanted, set()).add(listener)
        return listener

    def remove(self, listener: EventListener) -> None:
        left = self._listeners.get(listener.wanted, set())
        left.discard(listener)
        if not left:
            self._listeners.pop(listener.wanted, None)

    def publish(self, user_id: str, events: Iterable[StoredEvent]) -> None:
        if not self._listeners:
            return
        for event in events:
            told: LiveEvent | None = None
            for wanted in ((user_id, event.thread_id), (user_id, None)):
                for listener in self._listeners.get(wanted, ()):
                    told = told or LiveEvent.from_stored(event)
                    listener.push(told)

    def close_for_token(self, token_hash: str) -> None:
        """End every stream of a token that was revoked. Clients reconnect with the new one (I-10)."""
        for listener in self._all():
            if listener.token_hash == token_hash:
                listener.cut_off()

    def close(self) -> None:
        self._closed = True
        for listener in self._all():
            listener.close()

    def _all(self) -> list[EventListener]:
        return [listener for listeners in self._listeners.values() for listener in listeners]


_log = logging.getLogger(__name__)
_BACKLOG = 5000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WriteResult(Generic[T]):
    """The result of a transaction, and the events it wrote for one user."""

    result: T
    user_id: str
    events: Sequence[StoredEvent] = ()


@dataclass(slots=True)
class _EventBatch:
    """Events waiting for the next write, by thread. `written` resolves when they are stored."""

    events: dict[tuple[str, str], list[TurnEvent]] = field(default_factory=dict[tuple[str, str], list[TurnEvent]])
    count: int = 0
    written: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


EventSubscriber = Callable[[Sequence[StoredEvent]], None]


class EventLog:
    """The only writer of events in this process, so events are published in the order of their numbers."""

    def __init__(self, database: Database, fanout: EventFanout) -> None:
        self._database, self._fanout = database, fanout
        self._lock = asyncio.Lock()
        self._batch: _EventBatch | None = None
        self._writing: asyncio.Task[None] | None = None
        self._subscribers: list[EventSubscriber] = []

    def subscribe(self, subscriber: EventSubscriber) -> None:
        """Call `subscriber` with stored events. It runs under the log's lock, so it must not block or raise."""
        self._subscribers.append(subscriber)

    def add(self, thread_id: str, user_id: str, event: TurnEvent) -> asyncio.Future[None]:
        """Write an event soon. The future resolves when it is stored, or fails."""
        if self._batch is None:
            self._batch = _EventBatch()
            # The future may have no waiter. The writer logs the failure.
            self._batch.written.add_done_callback(lambda done: done.cancelled() or done.exception())
            if self._writing is None or self._writing.done():
                self._writing = asyncio.create_task(self._write())
        self._batch.events.setdefault((thread_id, user_id), []).append(event)
        self._batch.count += 1
        return self._batch.written

    @property
    def crowded(self) -> bool:
        """Whether writers should wait for the disk before they add more."""
        return self._batch is not None and self._batch.count > _BACKLOG

    async def _write(self) -> None:
        while self._batch is not None:
            batch, self._batch = self._batch, None
            try:
                async with self._lock:
                    told = await self._database.write(lambda conn, batch=batch: _append(conn, batch))
                    for user_id, events in told:
                        self._publish(user_id, events)
                batch.written.set_result(None)
            except AnnabelleError as error:
                _log.error("%d events could not be written: %s", batch.count, error.message)
                batch.written.set_exception(error)
            except Exception as error:  # noqa: BLE001  later events still need the writer
                _log.exception("%d events could not be written", batch.count)
                batch.written.set_exception(error)
            except BaseException:
                batch.written.cancel()  # or waiters would wait forever
                raise

    async def transact(self, change: Callable[[Connection], WriteResult[T]]) -> T:
        """Run a change that also writes events in one transaction, and publish the events after the commit."""
        async with self._lock:
            written = await self._database.write(change)
            self._publish(written.user_id, written.events)
        return written.result

    def _publish(self, user_id: str, events: Sequence[StoredEvent]) -> None:
        self._fanout.publish(user_id, events)
        for subscriber in self._subscribers:
            subscriber(events)

    async def close(self, timeout: float = 5) -> None:
        """Wait for the write in progress."""
        if self._writing is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._writing), timeout)


def _append(conn: Connection, batch: _EventBatch) -> list[tuple[str, list[StoredEvent]]]:
    return [
        (user_id, stored.append_events(conn, thread_id, events))
        for (thread_id, user_id), events in batch.events.items()
    ]


HEARTBEAT_SECONDS = 15.0
_PAGE_EVENTS = 500


@dataclass(frozen=True, slots=True)
class EventReader:
    """Which events to read: those of a user, of one thread or all (None), after an event number, and by which token."""

    user_id: str
    thread_id: str | None
    after: int
    token_hash: str = ""


async def stream_events(
    reader: EventReader, database: Database, fanout: EventFanout, heartbeat: float = HEARTBEAT_SECONDS
) -> AsyncIterator[bytes]:
    """Yields the reader's events until it disconnects or the hub stops."""
    # Listen before reading, so no event is missed in between. Duplicates are dropped by number.
    listener = fanout.listen(reader.user_id, reader.thread_id, reader.token_hash)
    try:
        # A number that no event has yet is from before a backup was restored: who waited for more would hear nothing.
        newest = await database.read(lambda conn: stored.last_event_number(conn, reader.user_id))
        position = min(reader.after, newest)
        # With the number, so that who is cut off before the first event comes back to the same place.
        yield f"retry: 1000\nid: {position}\n\n".encode()
        behind = True
        while True:
            if behind:
                async for seq, line in _read_missed(reader, position, database):
                    if listener.closed:
                        return
                    position = seq
                    yield line
            for told in listener.drain():
                if told.seq > position:
                    position = told.seq
                    yield told.line
            # Before the store is read, so events published from here on are queued again.
            behind = listener.restart_if_behind()
            if listener.closed:
                return
            if not behind and not await listener.wait(heartbeat):
                yield b": still here\n\n"
    finally:
        fanout.remove(listener)


async def follow_events(
    reader: EventReader, database: Database, fanout: EventFanout, heartbeat: float = HEARTBEAT_SECONDS
) -> AsyncGenerator[StoredEvent | None]:
    """Yields the reader's events, and None when there was none for so long, until it leaves or the hub stops."""
    listener = fanout.listen(reader.user_id, reader.thread_id, reader.token_hash)
    position = reader.after
    try:
        while True:
            listener.drain()
            listener.restart_if_behind()
            page = await database.read(
                lambda conn, seq=position: stored.list_events_after(
                    conn, reader.thread_id, reader.user_id, seq, _PAGE_EVENTS
                )
            )
            for event in page:
                if listener.revoked:
                    return
                position = event.seq
                yield event
            if len(page) == _PAGE_EVENTS:
                continue
            if listener.closed:
                return
            if not await listener.wait(heartbeat):
                yield None
    finally:
        fanout.remove(listener)


async def _read_missed(reader: EventReader, after: int, database: Database) -> AsyncIterator[tuple[int, bytes]]:
    while True:
        page = await database.read(
            lambda conn, seq=after: stored.list_events_after(conn, reader.thread_id, reader.user_id, seq, _PAGE_EVENTS)
        )
        for event in page:
            after = event.seq
            yield event.seq, encode_sse(event)
        if len(page) < _PAGE_EVENTS:
            return
