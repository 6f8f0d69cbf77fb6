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

_TIDY_SECONDS = 0.3


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
        self._cancelled = asyncio.Event()

    def cancel(self) -> None:
        """Stop: what runs is interrupted now, and no further step starts."""
        self._cancelled.set()

    async def work(self, job: Coroutine[object, object, T]) -> T:
        """Run the inside of a step so that a cancel ends it at once; the step then records that it was cancelled."""
        if self._cancelled.is_set():
            job.close()
            raise _cancelled()
        task, stop = asyncio.ensure_future(job), asyncio.ensure_future(self._cancelled.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return await task
            task.cancel()
            # What tidies up behind itself may do so; what takes longer, or does not listen, is not waited for.
            await asyncio.wait({task}, timeout=_TIDY_SECONDS)
            raise _cancelled()
        finally:
            stop.cancel()
            task.cancel()
            task.add_done_callback(_read)

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


def _read(task: asyncio.Future[T]) -> None:
    """Look at how an abandoned task ended, so that nobody is told it was never looked at."""
    if not task.cancelled():
        task.exception()


def _cancelled() -> TurnCancelled:
    return TurnCancelled("The turn was stopped.")
