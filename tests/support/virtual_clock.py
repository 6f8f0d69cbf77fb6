"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from support.timing import seconds


class VirtualClock:
    def __init__(self, moment: datetime) -> None:
        self.moment = moment
        self._moved, self._waits = asyncio.Event(), asyncio.Event()
        self._until: datetime | None = None

    def now(self) -> datetime:
        return self.moment

    async def wait(self, wake: asyncio.Event, until: datetime | None) -> None:
        self._until, begun = until, self.moment
        while not wake.is_set() and (until is None or begun <= self.moment < until):
            self._waits.set()
            self._moved.clear()
            either = [asyncio.create_task(event.wait()) for event in (wake, self._moved)]
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in either:
                    task.cancel()
        self._waits.clear()

    async def settle(self) -> None:
        """Until whoever uses the clock waits for it again."""
        async with asyncio.timeout(seconds(60)):
            await self._waits.wait()

    async def jump(self, moment: datetime) -> None:
        """As for a machine that was off until then."""
        await self.settle()
        self.moment = moment
        self._waits.clear()
        self._moved.set()
        await self.settle()

    async def run(self, span: timedelta) -> None:
        """Through all moments at which something is due."""
        end = self.moment + span
        await self.settle()
        while self._until is not None and self._until <= end:
            await self.jump(max(self._until, self.moment))
        await self.jump(end)
