"""Waits for a hub that does not answer, and has the person told once when it takes long (THK-06).

The wait happens inside a durable step: a thinker that dies meanwhile runs the step again and goes on waiting.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from annabelle.core.errors import HubUnreachable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait between tries, when to speak up, and when to give up."""

    first_seconds: float = 0.1
    longest_seconds: float = 5.0
    tell_after_seconds: float = 5.0
    give_up_after_seconds: float = 600.0


async def until_reached(ask: Callable[[], Awaitable[T]], patience: Patience, tell: Callable[[str], None]) -> T:
    """Ask until the hub answers, with growing waits."""
    started = time.monotonic()
    wait = patience.first_seconds
    told = False
    while True:
        try:
            return await ask()
        except HubUnreachable as away:
            waited = time.monotonic() - started
            if waited >= patience.give_up_after_seconds:
                raise
            if waited >= patience.tell_after_seconds and not told:
                tell(f"{away.message} The turn waits for it and goes on by itself.")
                told = True
            await asyncio.sleep(wait)
            wait = min(wait * 2, patience.longest_seconds)
