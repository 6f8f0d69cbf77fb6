"""SIGTERM and SIGINT: the first asks the hub to stop in good order, the second to hurry."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Coroutine
from types import TracebackType
from typing import Self

_log = logging.getLogger(__name__)
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignal:
    """Listens for signals while inside."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._pressed = asyncio.Event()

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._heard, number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)

    def _heard(self, number: int) -> None:
        _log.info("%s: stopping%s", signal.Signals(number).name, " in a hurry" if self._asked.is_set() else "")
        (self._pressed if self._asked.is_set() else self._asked).set()

    async def wait(self) -> None:
        """Sleep until the hub is asked to stop."""
        await self._asked.wait()

    async def unless(self, work: Coroutine[None, None, None]) -> bool:
        """Do the work, or leave it when asked to stop meanwhile; whether it was done."""
        return await self._race(work, self._asked)

    async def hurried(self, work: Coroutine[None, None, object]) -> bool:
        """Do the work, or leave it at the second signal; whether it was done."""
        return await self._race(work, self._pressed)

    @staticmethod
    async def _race(work: Coroutine[None, None, object], enough: asyncio.Event) -> bool:
        working, waiting = asyncio.ensure_future(work), asyncio.ensure_future(enough.wait())
        try:
            await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            if not working.done():
                working.cancel()
        if enough.is_set() and not (working.done() and not working.cancelled()):
            with contextlib.suppress(asyncio.CancelledError):
                await working
            return False
        await working
        return True
