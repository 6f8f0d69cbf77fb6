"""One turn while it runs in this process: its event stream, its result, and the ways to hold or cancel it."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from pydantic import TypeAdapter

from annabelle.core.contract import StreamedEvent, TurnResult
from annabelle.core.errors import TurnCancelled
from annabelle.core.messages import EventType, TurnEvent
from annabelle.core.tools import JsonObject

_POLL_SECONDS = 15.0
_UNFINISHED_WORD = re.compile(r"[A-Za-z0-9_]{1,100}\Z")
_FACTS: TypeAdapter[list[TurnEvent]] = TypeAdapter(list[TurnEvent])


class TurnStream:
    """The events of one turn, as lines for the hub. `stream` is a new id in every process."""

    def __init__(self, stream: str, message_id: str) -> None:
        self.stream, self.message_id = stream, message_id
        self._lines: list[tuple[int, bytes]] = []
        self._deltas: set[int] = set()
        self._facts: dict[str, TurnEvent] = {}
        self._count = 0
        self._closed = False
        self._changed = asyncio.Event()

    def add_fact(self, type: EventType, key: str, data: JsonObject, *, step: int = 0, attempt: int = 0) -> None:
        """Add an event that stays true; a second one with the same key is ignored."""
        if key in self._facts:
            return
        event = TurnEvent(message_id=self.message_id, key=key, type=type, step=step, attempt=attempt, data=data)
        self._facts[key] = event
        if data.get("final"):
            self._drop_deltas()
        self._append_event(event)

    def add_delta(self, type: EventType, text: str, *, step: int, attempt: int, number: int) -> None:
        """Add a piece of text of a running call."""
        key = f"{step}:{attempt}:{number}"
        data: JsonObject = {"text": text}
        self._deltas.add(self._count + 1)
        self._append_event(
            TurnEvent(message_id=self.message_id, key=key, type=type, step=step, attempt=attempt, data=data)
        )

    def facts(self) -> list[JsonObject]:
        """All facts, to be stored with the turn's result."""
        return [event.model_dump(mode="json") for event in self._facts.values()]

    def replay(self, facts: object) -> None:
        """Add facts of an earlier process."""
        for event in _FACTS.validate_python(facts):
            if event.key not in self._facts:
                self._facts[event.key] = event
                self._append_event(event)

    def close(self) -> None:
        """End the stream: readers get what is left, and end."""
        self._closed = True
        self._wake()

    async def lines(self, after: int, stream: str | None) -> AsyncIterator[bytes]:
        """Every event after `after`, until the turn is over; from the start if `stream` is of another process."""
        position = after if stream in (None, self.stream) else 0
        while True:
            start = bisect_right(self._lines, position, key=_line_number)
            if start < len(self._lines):
                batch = self._lines[start:]
                position = batch[-1][0]
                yield b"".join(line for _, line in batch)
            elif self._closed:
                return
            else:
                await self._wait_for_change()

    def _append_event(self, event: TurnEvent) -> None:
        self._count += 1
        line = StreamedEvent(stream=self.stream, n=self._count, event=event).model_dump_json().encode() + b"\n"
        self._lines.append((self._count, line))
        self._wake()

    def _drop_deltas(self) -> None:
        if self._deltas:
            self._lines = [entry for entry in self._lines if entry[0] not in self._deltas]
            self._deltas.clear()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _wait_for_change(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_POLL_SECONDS):
                await self._changed.wait()


def _line_number(entry: tuple[int, bytes]) -> int:
    return entry[0]


T = TypeVar("T")

_CLEANUP_SECONDS = 0.3


class LiveTurn:
    """Shared by the workflow that runs the turn and the requests that watch it."""

    def __init__(self, stream: TurnStream) -> None:
        self.stream = stream
        self.message_id = stream.message_id
        self.begun = False
        self.result: TurnResult | None = None
        self._finished = asyncio.Event()
        self._held = False
        self._running_steps = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._cancelled = asyncio.Event()

    def cancel(self) -> None:
        """Interrupt what runs, and start no further step."""
        self._cancelled.set()

    async def run_cancellable(self, job: Coroutine[object, object, T]) -> T:
        """Run the body of a step so that `cancel` ends it at once; the step records that it was cancelled."""
        if self._cancelled.is_set():
            job.close()
            raise _cancelled_error()
        task, stop = asyncio.ensure_future(job), asyncio.ensure_future(self._cancelled.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return await task
            task.cancel()
            # Give it a moment to clean up, but do not wait longer.
            await asyncio.wait({task}, timeout=_CLEANUP_SECONDS)
            raise _cancelled_error()
        finally:
            stop.cancel()
            task.cancel()
            task.add_done_callback(_consume_exception)

    @asynccontextmanager
    async def step(self) -> AsyncGenerator[None]:
        """Wraps each step. While the process stops, the turn waits here; the next process resumes it."""
        if self._held:
            await asyncio.get_running_loop().create_future()
        self._running_steps += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._running_steps -= 1
            if not self._running_steps:
                self._idle.set()

    def hold(self) -> None:
        """Start no further step, and end the streams: readers find the turn again in the next process."""
        self._held = True
        self.stream.close()

    async def wait_idle(self) -> None:
        """Returns when no step is running."""
        await self._idle.wait()

    def finish(self, result: TurnResult) -> None:
        self.result = result
        self.stream.close()
        self._finished.set()

    async def wait_result(self, timeout: float) -> TurnResult | None:
        """The result, waiting for it up to `timeout` seconds."""
        if self.result is None and timeout > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._finished.wait()
        return self.result


def _consume_exception(task: asyncio.Future[T]) -> None:
    """Retrieve the exception of an abandoned task, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()


def _cancelled_error() -> TurnCancelled:
    return TurnCancelled("The turn was stopped.")


class DeltaBuffer:
    """Joins deltas that arrive within a short interval; the first is sent at once.

    A fast model sends hundreds of tiny deltas a second; each would be an event in thinker, hub and every reader.
    """

    INTERVAL_SECONDS = 0.03

    def __init__(
        self, stream: TurnStream, step: int, attempt: int, rewrite: Callable[[str], str] | None = None
    ) -> None:
        """`rewrite` changes whole words of the text before they are sent."""
        self._stream, self._step, self._attempt, self._rewrite = stream, step, attempt, rewrite
        self._number = 0
        self._type: EventType = "text"
        self._pending: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, type: EventType, text: str) -> None:
        if type != self._type:
            self._send(whole=True)
            self._type = type
        self._pending.append(text)
        if self._timer is None:
            self._send()
            self._timer = asyncio.get_running_loop().call_later(self.INTERVAL_SECONDS, self._tick)

    def close(self, *, drop: bool = False) -> None:
        """Send what is left; with `drop`, discard it because the whole text follows."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if drop:
            self._pending.clear()
        self._send(whole=True)

    def _tick(self) -> None:
        self._timer = None
        if self._pending:
            self._send()
            self._timer = asyncio.get_running_loop().call_later(self.INTERVAL_SECONDS, self._tick)

    def _send(self, *, whole: bool = False) -> None:
        text, self._pending = "".join(self._pending), []
        if self._rewrite is not None and self._type == "text":
            unfinished = None if whole else _UNFINISHED_WORD.search(text)
            if unfinished is not None:
                text, self._pending = text[: unfinished.start()], [unfinished[0]]
            text = self._rewrite(text)
        if text:
            self._number += 1
            self._stream.add_delta(self._type, text, step=self._step, attempt=self._attempt, number=self._number)
