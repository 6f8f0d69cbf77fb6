"""Work that is done to its end once it is begun: what the database holds and what search knows stay the same."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")

CLOSE_SECONDS = 5.0


class Whole:
    """A caller may give up at any moment. A transaction that runs then is committed all the same, so what has to
    follow it must follow."""

    def __init__(self) -> None:
        self._begun: set[asyncio.Task[object]] = set()

    async def do(self, work: Coroutine[object, object, T]) -> T:
        """The result of the work. It goes on when nobody waits for that any more."""
        task = asyncio.create_task(work)
        self._begun.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Wait for what is under way, for a bounded time."""
        if self._begun:
            await asyncio.wait(self._begun, timeout=CLOSE_SECONDS)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._begun.discard(task)
        if not task.cancelled():
            task.exception()  # whoever asked was told, if they are still there
