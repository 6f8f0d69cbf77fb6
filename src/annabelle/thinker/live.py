"""One turn while it runs in this process: its events, its end, and the ways to hold or stop it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import TypeVar

from annabelle.core.contract import TurnResult
from annabelle.core.errors import TurnCancelled
from annabelle.thinker.events import TurnStream

T = TypeVar("T")


class LiveTurn:
    """Shared by the workflow that runs the turn and the requests that watch it."""

    def __init__(self, stream: TurnStream) -> None:
        self.stream = stream
        self.message_id = stream.message_id
        self.begun = False
        self.result: TurnResult | None = None
        self._over = asyncio.Event()
        self._held = False
        self._working = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._cancelled = False
        self._tasks: set[asyncio.Task[object]] = set()

    def cancel(self) -> None:
        """Stop: what runs is interrupted now, and no further step starts."""
        self._cancelled = True
        for task in self._tasks:
            task.cancel()

    async def work(self, job: Coroutine[object, object, T]) -> T:
        """Run the inside of a step so that a cancel ends it at once; the step then records that it was cancelled."""
        if self._cancelled:
            job.close()
            raise _cancelled()
        task = asyncio.ensure_future(job)
        self._tasks.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            task.cancel()
            if self._cancelled:
                raise _cancelled() from None
            raise
        finally:
            self._tasks.discard(task)

    @asynccontextmanager
    async def step(self) -> AsyncGenerator[None]:
        """Around each step. While the process is stopping, the turn waits here; the next process takes it up."""
        if self._held:
            await asyncio.get_running_loop().create_future()
        self._working += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._working -= 1
            if not self._working:
                self._quiet.set()

    def hold(self) -> None:
        """Begin no further step, and let followers go: they find the turn again in the next process."""
        self._held = True
        self.stream.close()

    async def at_rest(self) -> None:
        """Returns when no step is running."""
        await self._quiet.wait()

    def finish(self, result: TurnResult) -> None:
        self.result = result
        self.stream.close()
        self._over.set()

    async def over(self, timeout: float) -> TurnResult | None:
        """The result, waiting for it up to `timeout` seconds."""
        if self.result is None and timeout > 0:
            try:
                async with asyncio.timeout(timeout):
                    await self._over.wait()
            except TimeoutError:
                return None
        return self.result


def _cancelled() -> TurnCancelled:
    return TurnCancelled("The turn was stopped.")
