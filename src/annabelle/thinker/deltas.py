"""Deltas of a running model call, joined so that a fast model does not drown its readers."""

from __future__ import annotations

import asyncio

from annabelle.core.events import EventType
from annabelle.thinker.events import TurnStream


class DeltaBuffer:
    """Joins the deltas of one attempt that come within a moment of each other; the first goes out at once.

    A fast model sends hundreds of tiny deltas a second; each would cost an event in thinker, hub and every reader.
    """

    INTERVAL_SECONDS = 0.03

    def __init__(self, stream: TurnStream, step: int, attempt: int) -> None:
        self._stream, self._step, self._attempt = stream, step, attempt
        self._number = 0
        self._type: EventType = "text"
        self._pending: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, type: EventType, text: str) -> None:
        if type != self._type:
            self._send()
            self._type = type
        self._pending.append(text)
        if self._timer is None:
            self._send()
            self._timer = asyncio.get_running_loop().call_later(self.INTERVAL_SECONDS, self._tick)

    def close(self, *, drop: bool = False) -> None:
        """Send what is left; with `drop`, let it go because the whole text follows."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if drop:
            self._pending.clear()
        self._send()

    def _tick(self) -> None:
        self._timer = None
        if self._pending:
            self._send()
            self._timer = asyncio.get_running_loop().call_later(self.INTERVAL_SECONDS, self._tick)

    def _send(self) -> None:
        if not self._pending:
            return
        self._number += 1
        text = "".join(self._pending)
        self._pending.clear()
        self._stream.delta(self._type, text, step=self._step, attempt=self._attempt, number=self._number)
