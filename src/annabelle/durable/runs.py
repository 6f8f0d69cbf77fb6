"""The workflows that run in this process right now, and those that have to be taken up again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final

from annabelle.core.errors import AnnabelleError, Unavailable

_log = logging.getLogger(__name__)

TAKE_UP_SECONDS: Final = 5.0
STOP_SECONDS: Final = 5.0


class Runs:
    """Belongs to one event loop."""

    def __init__(self, requeue: Callable[[str], Awaitable[None]]) -> None:
        self._requeue = requeue
        self._running: dict[str, asyncio.Task[object]] = {}
        self._background: set[asyncio.Task[None]] = set()

    def note(self, workflow_id: str) -> None:
        """The current task is a run of this workflow, until it ends."""
        task = asyncio.current_task()
        assert task is not None, "a workflow runs as a task"
        self._running[workflow_id] = task
        task.add_done_callback(lambda done: self._forget(workflow_id, done))

    def _forget(self, workflow_id: str, done: asyncio.Task[object]) -> None:
        if self._running.get(workflow_id) is done:
            del self._running[workflow_id]

    def missing(self, workflow_ids: set[str]) -> set[str]:
        return workflow_ids - self._running.keys()

    async def wait(self, workflow_id: str, seconds: float) -> bool:
        """Wait until a run ends, or for so long; at once False when it does not run here."""
        task = self._running.get(workflow_id)
        if task is not None:
            await asyncio.wait({task}, timeout=seconds)
        return task is not None

    def stop(self, workflow_id: str) -> None:
        task = self._running.get(workflow_id)
        if task is not None:
            task.cancel()

    def interrupt(self, workflow_id: str) -> None:
        """Stop a run that can not go on for now; it goes on from its record when the database works again."""
        self.stop(workflow_id)
        self.in_background(self._take_up_again(workflow_id))

    async def pause(self) -> set[str]:
        """Stop every run where it stands, for `take_up` later; their ids."""
        tasks = dict(self._running)
        for task in tasks.values():
            task.cancel()
        if tasks:
            _done, late = await asyncio.wait(tasks.values(), timeout=STOP_SECONDS)
            if late:
                raise Unavailable("A workflow does not stop.", hint="Try again in a moment.")
        return set(tasks)

    def take_up(self, workflow_ids: set[str]) -> None:
        """Let runs go on from their records, soon."""
        for workflow_id in workflow_ids:
            self.in_background(self._take_up_again(workflow_id, at_once=True))

    async def _take_up_again(self, workflow_id: str, *, at_once: bool = False) -> None:
        while True:
            await asyncio.sleep(0 if at_once else TAKE_UP_SECONDS)
            at_once = False
            if workflow_id in self._running:
                continue
            try:
                await self._requeue(workflow_id)
                return
            except AnnabelleError as error:
                _log.warning("%s can not go on yet: %s", workflow_id, error.message)

    def in_background(self, work: Coroutine[object, object, None]) -> None:
        """Run something for as long as this process has workflows."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def stop_all(self, others: set[asyncio.Task[object]]) -> None:
        """Interrupt every run where it stands, and wait for them up to a bound."""
        tasks = others | set(self._running.values()) | self._background
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_SECONDS)
