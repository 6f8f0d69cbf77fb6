"""Keeps requests to a source apart in time, also when several calls come at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from annabelle.core.errors import ProviderRateLimited

MAX_WAIT_SECONDS = 15.0


class Spacing:
    """Gives every request a moment of its own, at least `seconds` after the one before."""

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._seconds, self._clock, self._sleep = seconds, clock, sleep
        self._next = 0.0

    async def turn(self) -> None:
        """Wait until it is one's turn; refuse at once if that would take too long to be of use."""
        now = self._clock()
        mine = max(now, self._next)
        if mine - now > MAX_WAIT_SECONDS:
            raise ProviderRateLimited(
                "Too many searches are waiting for their turn.", hint=f"Try again in {mine - now:.0f} seconds."
            )
        self._next = mine + self._seconds
        if mine > now:
            await self._sleep(mine - now)

    def hold(self, seconds: float) -> None:
        """The source asked for a pause."""
        self._next = max(self._next, self._clock() + seconds)
