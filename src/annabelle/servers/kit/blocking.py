"""Blocking work in a thread that notices when nobody waits for it any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

import anyio

from annabelle.core.errors import TurnCancelled

T = TypeVar("T")

SETTLE_SECONDS = 5.0
"""How long a cancelled call waits for its thread to reach the next check, so that it leaves nothing half done."""


class StopSign:
    """Checked between bounded pieces of blocking work; raises once the call was cancelled."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def raise_it(self) -> None:
        self._event.set()

    @property
    def raised(self) -> bool:
        return self._event.is_set()

    def check(self) -> None:
        if self._event.is_set():
            raise TurnCancelled("The call was cancelled.")


async def in_thread(work: Callable[[StopSign], T]) -> T:
    """Run `work` in a thread. A cancelled call raises the sign and waits, bounded, until the thread has stopped."""
    sign = StopSign()
    running = asyncio.ensure_future(asyncio.to_thread(work, sign))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        sign.raise_it()
        with anyio.move_on_after(
            SETTLE_SECONDS, shield=True
        ):  # the SDK's scopes cancel every wait inside, again and again
            await asyncio.wait([running])
        if running.done() and not running.cancelled():
            running.exception()  # looked at, so that asyncio does not report it as forgotten
        raise
