"""What time it is, and waiting for a time. Tests have a clock of their own."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime
from typing import Final, Protocol

from annabelle.core.messages import now

_LONGEST_SLEEP: Final = 60.0
"""A machine that was asleep, or whose clock was set, is noticed after so many seconds."""


class Clock(Protocol):
    def now(self) -> datetime: ...

    async def wait(self, wake: asyncio.Event, until: datetime | None) -> None:
        """Until this moment, until `wake` is set or the clock is set back; without a moment until `wake` is set."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return now()

    async def wait(self, wake: asyncio.Event, until: datetime | None) -> None:
        begun = self.now()
        while until is None or begun <= self.now() < until:
            seconds = None if until is None else min((until - self.now()).total_seconds(), _LONGEST_SLEEP)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(wake.wait(), seconds)
                return
