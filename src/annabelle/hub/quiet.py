"""Lets one thing have the house still: work that would begin waits, work that runs is waited for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator


class Quiet:
    """Everything in the hub that carries people's words from one place to another does it inside `working`.

    Turns have their own gate, the lanes; this is for what goes on beside them, as storing turns in memory.
    """

    def __init__(self) -> None:
        self._working = 0
        self._open = asyncio.Event()
        self._open.set()
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """Around a piece of work that must not run while the house is still; it waits for its time."""
        while not self._open.is_set():
            await self._open.wait()
        self._working += 1
        try:
            yield
        finally:
            self._working -= 1
            self._changed.set()

    def hold(self) -> None:
        """Let nothing more begin."""
        self._open.clear()

    def let_go(self) -> None:
        self._open.set()

    async def still(self, timeout: float) -> bool:
        """Wait until nothing runs; False when something still does."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self._working:
                    self._changed.clear()
                    await self._changed.wait()
        return not self._working
