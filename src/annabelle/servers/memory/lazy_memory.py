"""Opens the memory on the first call, so that an unused server costs nothing."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from annabelle.core.errors import Unavailable
from annabelle.servers.memory.config import MemoryConfig

if TYPE_CHECKING:
    from annabelle.servers.memory.open_memory import OpenMemory


T = TypeVar("T")


class LazyMemory:
    """What every group of tools is given: `await opening.library()` is the open memory.

    A memory that can not be opened answers each call with the same sentence, and is tried again at the next one.
    """

    def __init__(self, config: MemoryConfig) -> None:
        self.config = config
        self._task: asyncio.Task[OpenMemory] | None = None
        self._lock = asyncio.Lock()
        self._closed = False

    async def get(self) -> OpenMemory:
        """The open memory. Calls that come while it opens wait for the same opening."""
        task = self._task
        if task is None:
            async with self._lock:
                if self._closed:
                    raise Unavailable("The memory is being closed: Annabelle is stopping.")
                task = self._task or self._start_opening()
        # A caller that gives up does not stop the opening: the next one finds it done.
        return await asyncio.shield(task)

    async def replace(self, work: Callable[[], Awaitable[T]]) -> T:
        """Close the memory, do the work, and let the next call open what is there then."""
        async with self._lock:
            await self._close_open()
            return await work()

    async def close(self) -> None:
        """Fold everything into the file and let go. Safe to call twice, and when nothing was ever opened."""
        async with self._lock:
            self._closed = True
            await self._close_open()

    def _start_opening(self) -> asyncio.Task[OpenMemory]:
        # In a context of its own: it outlives the call that happened to be the first.
        self._task = asyncio.create_task(_load_and_open(self.config), name="memory-open", context=contextvars.Context())
        self._task.add_done_callback(self._on_opened)
        return self._task

    def _on_opened(self, task: asyncio.Task[OpenMemory]) -> None:
        if self._task is task and (task.cancelled() or task.exception() is not None):
            self._task = None

    async def _close_open(self) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is None:
            await task.result().close()


async def _load_and_open(config: MemoryConfig) -> OpenMemory:
    # The database, the vectors and the vocabulary are most of this process; they come in here, off the event loop.
    module = await asyncio.to_thread(importlib.import_module, "annabelle.servers.memory.open_memory")
    return await module.OpenMemory.open(config)
