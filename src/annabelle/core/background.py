"""Tasks that run beside their owner until it stops them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

_STOP_SECONDS = 5.0


class BackgroundTasks:
    """Keeps its tasks alive, because the event loop alone would not."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def wait(self, seconds: float = _STOP_SECONDS) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    async def stop(self, seconds: float = _STOP_SECONDS) -> None:
        """Cancel the tasks and wait for their end."""
        self.cancel()
        await self.wait(seconds)
