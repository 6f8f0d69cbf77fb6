"""Keeps the calls of one agent apart: none starts sooner than so many seconds after the one before (CST-07)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from annabelle.core.settings import Settings
from annabelle.llm.providers import Endpoint, is_loopback

SERVICE_SECONDS = 1.0

Sleep = Callable[[float], Awaitable[None]]


def gap_for(settings: Settings, place: Endpoint) -> float:
    """What is set; else a second for a service, and nothing for a model on this machine."""
    if settings.llm_spacing_seconds is not None:
        return settings.llm_spacing_seconds
    return 0.0 if place.provider.local or is_loopback(place.base_url) else SERVICE_SECONDS


class Spacing:
    """Who wants to call waits in the order they came, one by one; a wait that is cancelled costs the others nothing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, sleep: Sleep = asyncio.sleep) -> None:
        self._clock, self._sleep = clock, sleep
        self._last: float | None = None
        # Held while waiting for the moment to start, never while waiting for an answer.
        self._turn = asyncio.Lock()

    async def wait(self, gap: float) -> None:
        """Return when a call may start; it counts as started then."""
        if gap <= 0:
            self._last = self._clock()
            return
        async with self._turn:
            # In a loop: a call without a gap of its own may have started meanwhile.
            while self._last is not None and (left := self._last + gap - self._clock()) > 0:
                await self._sleep(left)
            self._last = self._clock()
