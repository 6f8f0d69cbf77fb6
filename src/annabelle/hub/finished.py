"""Wakes whoever waits for the answer to a message."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator


class Finished:
    """Waiting requests, by message id. They look into the store themselves once they are woken."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}

    @contextlib.contextmanager
    def watch(self, message_id: str) -> Generator[asyncio.Event]:
        """An event that is set when the message is finished. Look at the message after entering, then wait."""
        event = asyncio.Event()
        waiting = self._waiting.setdefault(message_id, set())
        waiting.add(event)
        try:
            yield event
        finally:
            waiting.discard(event)
            if not waiting:
                self._waiting.pop(message_id, None)

    def tell(self, message_id: str) -> None:
        for event in self._waiting.get(message_id, ()):
            event.set()

    def tell_all(self) -> None:
        """The hub is stopping: nobody waits any longer."""
        for message_id in list(self._waiting):
            self.tell(message_id)
