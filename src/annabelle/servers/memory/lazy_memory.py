"""Opens the memory on the first call, so that an unused server costs nothing."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar
from zoneinfo import ZoneInfo

from annabelle.core.errors import Unavailable
from annabelle.servers.memory.arguments import load_zone
from annabelle.servers.memory.config import MemoryConfig

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from annabelle.servers.memory.open_memory import OpenMemory


T = TypeVar("T")


class LazyMemory:
    """The handle every group of tools is given: `await memory.get()` is the open memory.

    If it cannot be opened, each call fails with the same error, and the next one tries again.
    """

    def __init__(self, config: MemoryConfig) -> None:
        self.config = config
        self._task: asyncio.Task[OpenMemory] | None = None
        self._lock = asyncio.Lock()
        self._closed = False

    async def get(self) -> OpenMemory:
        """The open memory. Calls made while it opens wait for it."""
        task = self._task
        if task is None:
            async with self._lock:
                if self._closed:
                    raise Unavailable("The memory is being closed: Annabelle is stopping.")
                task = self._task or self._start_opening()
        # A cancelled caller does not cancel the opening: the next call will need it.
        return await asyncio.shield(task)

    async def replace(self, work: Callable[[], Awaitable[T]]) -> T:
        """Close the memory and run `work`. The next call opens it again."""
        async with self._lock:
            await self._close_open()
            return await work()

    async def close(self) -> None:
        """Close the memory if it is open. Safe to call twice."""
        async with self._lock:
            self._closed = True
            await self._close_open()

    def _start_opening(self) -> asyncio.Task[OpenMemory]:
        # In a context of its own: it outlives the first call.
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


class MemoryTools:
    """Base of the groups of tools, which all work on one memory."""

    def __init__(self, lazy_memory: LazyMemory) -> None:
        self._memory = lazy_memory

    async def _read(self, query: Callable[[Connection], T]) -> T:
        return await (await self._memory.get()).database.read(query)

    async def _write(self, change: Callable[[Connection], T]) -> T:
        return await (await self._memory.get()).database.write(change)

    def _zone(self) -> ZoneInfo:
        return load_zone(self._memory.config.timezone)


async def _load_and_open(config: MemoryConfig) -> OpenMemory:
    # These imports are most of this process, so they run off the event loop.
    module = await asyncio.to_thread(importlib.import_module, "annabelle.servers.memory.open_memory")
    return await module.OpenMemory.open(config)
