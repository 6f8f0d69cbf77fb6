"""The events of one turn, in memory, numbered, and read by any number of followers.

Deltas of a running model call are numbered within their attempt. Facts have the same key on every replay, so that a
hub that already wrote one down passes over the second. When a step's whole text is known, its deltas are let go: the
fact supersedes them.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator

from pydantic import TypeAdapter

from annabelle.core.contract import StreamedEvent
from annabelle.core.events import EventType, TurnEvent
from annabelle.core.tools import JsonObject

_LOOK_AGAIN_SECONDS = 15.0
_FACTS: TypeAdapter[list[TurnEvent]] = TypeAdapter(list[TurnEvent])


class TurnStream:
    """What happened in one turn, as lines for the hub. `stream` is new in every process."""

    def __init__(self, stream: str, message_id: str) -> None:
        self.stream, self.message_id = stream, message_id
        self._lines: list[tuple[int, bytes]] = []
        self._deltas: set[int] = set()
        self._facts: dict[str, TurnEvent] = {}
        self._count = 0
        self._closed = False
        self._waiting: list[asyncio.Future[None]] = []

    def fact(self, type: EventType, key: str, data: JsonObject, *, step: int = 0, attempt: int = 0) -> None:
        """State something that is so from now on; saying it twice is saying it once."""
        if key in self._facts:
            return
        event = TurnEvent(message_id=self.message_id, key=key, type=type, step=step, attempt=attempt, data=data)
        self._facts[key] = event
        if data.get("final"):
            self._drop_deltas()
        self._add(event)

    def delta(self, type: EventType, text: str, *, step: int, attempt: int, number: int) -> None:
        """A little more text of a call that is still running."""
        key = f"{step}:{attempt}:{number}"
        data: JsonObject = {"text": text}
        self._deltas.add(self._count + 1)
        self._add(TurnEvent(message_id=self.message_id, key=key, type=type, step=step, attempt=attempt, data=data))

    def facts(self) -> list[JsonObject]:
        """All facts, to be kept with the turn's result."""
        return [event.model_dump(mode="json") for event in self._facts.values()]

    def replay(self, facts: object) -> None:
        """Say again what an earlier process stated."""
        for event in _FACTS.validate_python(facts):
            if event.key not in self._facts:
                self._facts[event.key] = event
                self._add(event)

    def close(self) -> None:
        """The turn is over: followers read what is left, and end."""
        self._closed = True
        self._wake()

    async def lines(self, after: int, stream: str | None) -> AsyncIterator[bytes]:
        """Every event past `after`, as it comes, until the turn is over; from the start for another stream's reader."""
        position = after if stream in (None, self.stream) else 0
        while True:
            start = bisect_right(self._lines, position, key=_number)
            if start < len(self._lines):
                batch = self._lines[start:]
                position = batch[-1][0]
                yield b"".join(line for _, line in batch)
            elif self._closed:
                return
            else:
                await self._changed()

    def _add(self, event: TurnEvent) -> None:
        self._count += 1
        line = StreamedEvent(stream=self.stream, n=self._count, event=event).model_dump_json().encode() + b"\n"
        self._lines.append((self._count, line))
        self._wake()

    def _drop_deltas(self) -> None:
        if self._deltas:
            self._lines = [entry for entry in self._lines if entry[0] not in self._deltas]
            self._deltas.clear()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def _changed(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await asyncio.wait([waiter], timeout=_LOOK_AGAIN_SECONDS)
        if not waiter.done():
            self._waiting.remove(waiter)
            waiter.cancel()


def _number(entry: tuple[int, bytes]) -> int:
    return entry[0]
