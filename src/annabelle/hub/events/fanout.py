"""Tells every listener what was just written down, and never waits for a slow one (THR-04)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from annabelle.core.events import StoredEvent

_QUEUE_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Told:
    """One event on its way to the listeners of its owner, encoded once for all of them."""

    seq: int
    thread_id: str
    user_id: str
    line: bytes

    @classmethod
    def of(cls, event: StoredEvent, user_id: str) -> Told:
        return cls(event.seq, event.thread_id, user_id, encode(event))


def encode(event: StoredEvent) -> bytes:
    """An event as server-sent events spell it. JSON has no bare line feed, so one data line is enough."""
    return f"id: {event.seq}\nevent: {event.type}\ndata: {event.model_dump_json()}\n\n".encode()


class Listener:
    """One reader's queue. When it is full the queue is let go, and the reader reads on from the store."""

    def __init__(self, user_id: str, thread_id: str | None, limit: int = _QUEUE_LIMIT) -> None:
        self.user_id, self._thread_id, self._limit = user_id, thread_id, limit
        self._waiting: deque[Told] = deque()
        self._news = asyncio.Event()
        self.fell_behind = False
        self.closed = False

    def concerns(self, told: Told) -> bool:
        return told.user_id == self.user_id and self._thread_id in (None, told.thread_id)

    def put(self, told: Told) -> None:
        if self.fell_behind:
            return
        if len(self._waiting) >= self._limit:
            self._waiting.clear()
            self.fell_behind = True
        else:
            self._waiting.append(told)
        self._news.set()

    def close(self) -> None:
        self.closed = True
        self._news.set()

    async def wait(self, timeout: float) -> bool:
        """Whether something came within the time."""
        try:
            await asyncio.wait_for(self._news.wait(), timeout)
        except TimeoutError:
            return False
        return True

    def take(self) -> list[Told]:
        taken = list(self._waiting)
        self._waiting.clear()
        if not self.closed:
            self._news.clear()
        return taken


class Fanout:
    """The listeners of this process."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()
        self._closed = False

    def listen(self, user_id: str, thread_id: str | None = None) -> Listener:
        listener = Listener(user_id, thread_id)
        if self._closed:
            listener.close()
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)

    def tell(self, user_id: str, events: Iterable[StoredEvent]) -> None:
        if not self._listeners:
            return
        for event in events:
            told: Told | None = None
            for listener in self._listeners:
                told = told or Told.of(event, user_id)
                if listener.concerns(told):
                    listener.put(told)

    def dismiss(self, user_id: str) -> None:
        """End every stream of a person whose token was taken back; who has a new one comes again with it (I-10)."""
        for listener in self._listeners:
            if listener.user_id == user_id:
                listener.close()

    def close(self) -> None:
        """Let every listener end: the hub is stopping."""
        self._closed = True
        for listener in self._listeners:
            listener.close()
