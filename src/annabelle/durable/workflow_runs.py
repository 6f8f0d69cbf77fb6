"""Workflows running in this process, and how their steps are written while the database fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Executor
from typing import Final

from sqlalchemy.exc import DBAPIError

from annabelle.core.errors import AnnabelleError, Unavailable
from annabelle.core.tools import JsonObject
from annabelle.durable.dbos_patches import StepLog, WorkflowExecution
from annabelle.store.engine import DatabaseLocation, describe_error

_log = logging.getLogger(__name__)

RESTART_SECONDS: Final = 5.0
STOP_SECONDS: Final = 5.0


class RunningWorkflows:
    """Not thread-safe: belongs to one event loop."""

    def __init__(self, requeue: Callable[[str], Awaitable[None]]) -> None:
        self._requeue = requeue
        self._running: dict[str, asyncio.Task[object]] = {}
        self._background: set[asyncio.Task[None]] = set()

    def register_current(self, workflow_id: str) -> None:
        """Registers the current task as a run of this workflow, until it ends."""
        task = asyncio.current_task()
        assert task is not None, "a workflow runs as a task"
        self._running[workflow_id] = task
        task.add_done_callback(lambda done: self._unregister(workflow_id, done))

    def _unregister(self, workflow_id: str, done: asyncio.Task[object]) -> None:
        if self._running.get(workflow_id) is done:
            del self._running[workflow_id]

    async def wait_for(self, workflow_id: str, seconds: float) -> bool:
        """Waits until a run ends, or times out; returns False at once if it does not run here."""
        task = self._running.get(workflow_id)
        if task is not None:
            await asyncio.wait({task}, timeout=seconds)
        return task is not None

    def stop(self, workflow_id: str) -> None:
        task = self._running.get(workflow_id)
        if task is not None:
            task.cancel()

    def interrupt(self, workflow_id: str) -> None:
        """Stops a run that cannot continue; it resumes when the database works again."""
        self.stop(workflow_id)
        self.run_in_background(self._restart_when_possible(workflow_id))

    async def pause(self) -> set[str]:
        """Stops every run, to `restart` later; returns their ids."""
        tasks = dict(self._running)
        for task in tasks.values():
            task.cancel()
        if tasks:
            _done, late = await asyncio.wait(tasks.values(), timeout=STOP_SECONDS)
            if late:
                raise Unavailable("A workflow does not stop.", hint="Try again in a moment.")
        return set(tasks)

    def restart(self, workflow_ids: set[str]) -> None:
        """Resumes stopped runs from their recorded steps."""
        for workflow_id in workflow_ids:
            self.run_in_background(self._restart_when_possible(workflow_id, at_once=True))

    async def _restart_when_possible(self, workflow_id: str, *, at_once: bool = False) -> None:
        while True:
            await asyncio.sleep(0 if at_once else RESTART_SECONDS)
            at_once = False
            if workflow_id in self._running:
                continue
            try:
                await self._requeue(workflow_id)
                return
            except AnnabelleError as error:
                _log.warning("%s cannot go on yet: %s", workflow_id, error.message)

    def run_in_background(self, work: Coroutine[object, object, None]) -> None:
        """Runs a coroutine until `stop_all`."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def stop_all(self) -> None:
        """Cancels everything and waits for it, up to a limit."""
        tasks = {*self._running.values(), *self._background}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_SECONDS)


GIVE_UP_SECONDS: Final = 30.0
FIRST_WAIT_SECONDS: Final = 0.2
LONGEST_WAIT_SECONDS: Final = 5.0


class StepRecorder:
    """Writes the steps of a run. If a step cannot be written, the run is interrupted, as if it was not done."""

    def __init__(
        self,
        step_log: StepLog,
        threads: Executor,
        execution: WorkflowExecution,
        place: DatabaseLocation,
        interrupt: Callable[[str], None],
    ) -> None:
        self._step_log, self._threads, self._execution = step_log, threads, execution
        self._place, self._interrupt = place, interrupt

    async def __call__(self, number: int, key: str, outcome: JsonObject, started_ms: int) -> None:
        loop = asyncio.get_running_loop()
        end, wait = loop.time() + GIVE_UP_SECONDS, FIRST_WAIT_SECONDS
        while True:
            try:
                await loop.run_in_executor(
                    self._threads, self._step_log.write_step, self._execution, number, key, outcome, started_ms
                )
                return
            except DBAPIError as error:
                trouble = describe_error(error, self._place)
                if trouble is None:
                    raise
                if loop.time() + wait > end:
                    _log.error("%s: %s", self._execution.workflow_id, trouble.message)
                    self._interrupt(self._execution.workflow_id)
                    raise asyncio.CancelledError from error
                _log.warning("%s is not written down yet: %s", key, trouble.message)
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)
