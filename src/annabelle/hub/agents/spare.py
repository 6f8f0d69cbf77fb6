"""One thinker process with its imports done and no identity yet, so that the next agent starts at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from annabelle.core.errors import AnnabelleError
from annabelle.hub.agents.process import ThinkerProcess

_log = logging.getLogger(__name__)
_IDLE_SECONDS = 2.0
_LOOK_SECONDS = 0.5


class WarmSpare:
    """Keeps one spare. It is made only while the hub is idle: its imports would slow a turn down."""

    def __init__(self, spawn: Callable[[], Awaitable[ThinkerProcess]], idle: Callable[[], bool], enabled: bool) -> None:
        self._spawn, self._idle, self._enabled = spawn, idle, enabled
        self._process: ThinkerProcess | None = None
        self._preparing: asyncio.Task[None] | None = None

    def prepare(self) -> None:
        """Make a spare soon, if there is none."""
        if self._enabled and (self._preparing is None or self._preparing.done()) and not self.ready:
            self._preparing = asyncio.create_task(self._prepare())

    @property
    def ready(self) -> bool:
        return self._process is not None and self._process.alive

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.alive else None

    def take(self) -> ThinkerProcess | None:
        """The spare, if there is one; another is made in its place."""
        process, self._process = self._process, None
        if process is not None:
            self.prepare()
        return process if process is not None and process.alive else None

    async def _prepare(self) -> None:
        idle_for = 0.0
        while idle_for < _IDLE_SECONDS:
            await asyncio.sleep(_LOOK_SECONDS)
            idle_for = idle_for + _LOOK_SECONDS if self._idle() else 0.0
        try:
            self._process = await self._spawn()
        except AnnabelleError as error:
            _log.warning("No spare agent process: %s", error.message)

    async def stop(self) -> None:
        self._enabled = False
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.wait([self._preparing], timeout=5)
        if self._process is not None:
            await self._process.kill()
            self._process = None
