"""Durable workflows of one process: a started workflow is always finished, and a finished step is never repeated."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, ParamSpec, TypeVar

from sqlalchemy import Engine as SqlEngine
from sqlalchemy.exc import DBAPIError

from annabelle.core.backoff import RetryPolicy
from annabelle.core.errors import AnnabelleError, Conflict, NotFound, TurnCancelled, Unavailable
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.durable.dbos_patches import (
    AlreadyAnotherWorkflow,
    DbosEngine,
    EngineError,
    EngineIdentity,
    WorkflowBody,
    WorkflowExecution,
)
from annabelle.durable.steps import (
    ERROR,
    FIRST_NUMBER,
    StepFunction,
    WorkflowRun,
    failure_outcome,
    success_outcome,
    unwrap_outcome,
)
from annabelle.durable.workflow_runs import RunningWorkflows, StepRecorder
from annabelle.store.engine import DatabaseLocation, checkpoint, describe_error, make_engine, parse_url
from annabelle.store.file_lock import FileLock

_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
Workflow = Callable[[JsonObject], Awaitable[JsonObject]]
WorkflowState = Literal["running", "done", "failed", "cancelled"]

DESTROY_SECONDS: Final = 15.0
RECOVERY_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.1
START_SECONDS: Final = 30.0
KEEP_DAYS: Final = 7
FORGET_AT_ONCE: Final = 5000
FORGET_SECONDS: Final = 6 * 3600.0

_STATES: Final[dict[str, WorkflowState]] = {
    "PENDING": "running",
    "ENQUEUED": "running",
    "DELAYED": "running",
    "CANCELLED": "cancelled",
}

_run: contextvars.ContextVar[WorkflowRun | None] = contextvars.ContextVar("annabelle_durable_run", default=None)
_just_started: contextvars.ContextVar[str | None] = contextvars.ContextVar("annabelle_durable_started", default=None)


@dataclass(frozen=True, slots=True)
class PendingWorkflow:
    workflow_id: str
    name: str


class Durable:
    """One per process. Register workflows, launch, start; inside a workflow do everything with an effect in steps."""

    def __init__(
        self,
        *,
        name: str,
        executor_id: str,
        database_url: str,
        schema: str,
        synchronous: str = "NORMAL",
        application_version: str = "1",
    ) -> None:
        self._location = DatabaseLocation(parse_url(database_url))
        self._lock = FileLock(self._location.file) if self._location.file else None
        self._database = make_engine(database_url, synchronous, pool_size=1 if self._lock else 8)
        self._engine = DbosEngine(EngineIdentity(name, executor_id, application_version, schema), self._database)
        # SQLite takes one writer at a time, and waiting for a thread is cheaper than for its lock.
        self._threads = ThreadPoolExecutor(1 if self._lock else 4, thread_name_prefix="durable")
        self._runs = RunningWorkflows(lambda workflow_id: self._call(self._engine.requeue, workflow_id))
        self._launched = False
        self._opened = asyncio.Event()
        self._not_suspended = asyncio.Event()
        self._not_suspended.set()

    def workflow(self, name: str) -> Callable[[Workflow], Workflow]:
        """Register `async def fn(argument) -> result`, both JSON objects. The name is stored: never change it."""

        def register(function: Workflow) -> Workflow:
            self._engine.register(name, self._body(function))
            return function

        return register

    def _body(self, function: Workflow) -> WorkflowBody:
        async def body(argument: JsonObject) -> JsonObject:
            execution = self._engine.current_execution()
            self._runs.register_current(execution.workflow_id)
            # The engine takes up what was pending while it is still being launched.
            await self._opened.wait()
            await self._not_suspended.wait()
            _run.set(await self._read_run(execution))
            try:
                return success_outcome(await function(argument))
            except AnnabelleError as error:
                return failure_outcome(error)
            except EngineError:
                raise
            except Exception as error:  # noqa: BLE001  the edge of a workflow: whoever waits for it must see an end
                _log.exception("The workflow %s failed unexpectedly", execution.workflow_id)
                return failure_outcome(AnnabelleError(f"It failed unexpectedly: {type(error).__name__}: {error}."))

        return body

    async def _read_run(self, execution: WorkflowExecution) -> WorkflowRun:
        record = StepRecorder(self._engine.step_log, self._threads, execution, self._location, self._runs.interrupt)
        if _just_started.get() == execution.workflow_id:
            return WorkflowRun(record, {})  # begun this moment: nothing is on record
        try:
            recorded, highest = await self._call(self._engine.step_log.read_steps, execution.workflow_id)
        except AnnabelleError as error:
            _log.warning("%s can not go on yet: %s", execution.workflow_id, error.message)
            self._runs.interrupt(execution.workflow_id)
            raise asyncio.CancelledError from error
        return WorkflowRun(record, recorded, max(FIRST_NUMBER, highest + 1))

    async def launch(self) -> None:
        """Take ownership of the database and go on with every workflow that had not ended."""
        if self._lock:
            self._lock.acquire()
        try:
            await asyncio.to_thread(self._probe)
            await asyncio.to_thread(self._engine.launch, asyncio.get_running_loop())
            self._opened.set()
            recovering = {workflow_id for workflow_id, _name in await self._call(self._engine.step_log.list_pending)}
        except BaseException as error:
            await asyncio.to_thread(self._release)
            if isinstance(error, DBAPIError) and (known := describe_error(error, self._location)):
                raise known from error
            raise
        self._launched = True
        self._runs.run_in_background(self._watch_recovery(recovering))

    def _probe(self) -> None:
        """Meet a database in trouble here: the engine would log it at length, or wait for it without end."""
        with self._database.begin() as connection:
            connection.exec_driver_sql("SELECT 1")

    async def _watch_recovery(self, recovering: set[str]) -> None:
        """Let the engine look for recovered workflows often until all of them run, and seldom from then on.

        From then on also delete what ended long ago, now and again: a process may run for months.
        """
        end = asyncio.get_running_loop().time() + RECOVERY_SECONDS
        while self._runs.missing(recovering) and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(POLL_SECONDS)
            recovering &= {workflow_id for workflow_id, _name in await self._call(self._engine.step_log.list_pending)}
        self._engine.poll_rarely()
        while True:
            await self._delete_old()
            await asyncio.sleep(FORGET_SECONDS)

    async def _delete_old(self) -> None:
        try:
            await self._call(self._engine.delete_ended, now() - timedelta(days=KEEP_DAYS), FORGET_AT_ONCE)
        except AnnabelleError as error:
            _log.warning("Old workflows were not deleted: %s", error.message)

    async def start(self, workflow_name: str, workflow_id: str, argument: JsonObject) -> None:
        """Begin a workflow; the same id again changes nothing. It is on disk when this returns, and runs by itself."""
        self._require_launched()
        context = contextvars.copy_context()
        context.run(_just_started.set, workflow_id)
        context.run(_run.set, None)
        starting = asyncio.create_task(self._engine.start(workflow_name, workflow_id, argument), context=context)
        try:
            # Shielded: a start that is left half-way is on record as begun, and nothing runs it before the next launch.
            async with asyncio.timeout(START_SECONDS):
                await asyncio.shield(starting)
        except TimeoutError as error:
            raise Unavailable(f"The database {self._location.name} does not answer.", hint="Try again.") from error
        except DBAPIError as error:
            raise describe_error(error, self._location) or error from error
        except AlreadyAnotherWorkflow as error:
            raise Conflict(f"The id {workflow_id} belongs to another workflow.") from error

    async def step(
        self, name: str, fn: StepFunction, *, retry: RetryPolicy | None = None, timeout: float | None = None
    ) -> object:
        """Do something with an effect, inside a workflow. Once it has finished it is not done again, whatever crashes.

        The result must be JSON. An AnnabelleError is recorded too, and raised again as the same class. Steps may run
        concurrently if their names differ; the same name one after the other is told apart by order.
        """
        return await self._current_run().step(name, fn, retry, timeout)

    async def sleep(self, seconds: float) -> None:
        """Wait inside a workflow; after a crash only for what is left."""
        await self._current_run().sleep(seconds)

    async def signal(self, workflow_id: str, topic: str, payload: object) -> None:
        """Hand a JSON value to a workflow that waits, or will wait, for this topic."""
        if await self.status(workflow_id) is None:
            raise NotFound(f"There is no workflow {workflow_id}.")
        await self._engine.send(workflow_id, topic, payload)

    async def wait(self, topic: str, timeout: float) -> object:
        """Wait inside a workflow for a signal; None when none came in time. The clock goes on over a crash."""
        self._current_run()
        return await self._engine.receive(topic, timeout)

    async def cancel(self, workflow_id: str) -> None:
        """Stop a workflow for good, at once if it runs here. One that has ended stays as it ended."""
        self._require_launched()
        await self._call(self._engine.cancel, workflow_id)
        self._runs.stop(workflow_id)

    async def status(self, workflow_id: str) -> WorkflowState | None:
        """How a workflow stands; None when it was never begun."""
        found = await self._state(workflow_id)
        return None if found is None else found[0]

    async def result(self, workflow_id: str, timeout: float) -> JsonObject:
        """What a workflow returned, or the error it ended with raised again; Unavailable when it takes longer."""
        end = asyncio.get_running_loop().time() + timeout
        while True:
            found = await self._state(workflow_id)
            if found is None:
                raise NotFound(f"There is no workflow {workflow_id}.")
            state, outcome = found
            if state == "cancelled":
                raise TurnCancelled(f"The workflow {workflow_id} was cancelled.")
            if outcome is not None:
                value = unwrap_outcome(outcome)
                assert isinstance(value, dict), "workflows return JSON objects"
                return value  # pyright: ignore[reportUnknownVariableType]
            if state != "running":
                raise AnnabelleError(f"The workflow {workflow_id} failed in the engine.")
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                raise Unavailable(f"The workflow {workflow_id} has not ended after {timeout:g} s.")
            if not await self._runs.wait_for(workflow_id, left):
                await asyncio.sleep(min(left, POLL_SECONDS))

    async def _state(self, workflow_id: str) -> tuple[WorkflowState, JsonObject | None] | None:
        self._require_launched()
        found = await self._call(self._engine.step_log.read_state, workflow_id)
        if found is None:
            return None
        word, outcome = found
        if word == "SUCCESS" and outcome is not None:
            return ("failed" if ERROR in outcome else "done"), outcome
        return _STATES.get(word, "failed"), None

    async def pending(self) -> list[PendingWorkflow]:
        """Every workflow that has not ended, oldest first."""
        self._require_launched()
        return [PendingWorkflow(*row) for row in await self._call(self._engine.step_log.list_pending)]

    @contextlib.asynccontextmanager
    async def suspended(self) -> AsyncGenerator[None]:
        """While inside, no workflow runs here; afterwards they go on from their records as those are then."""
        stopped: set[str] = set()
        self._not_suspended.clear()
        try:
            stopped = await self._runs.pause()
            yield
        finally:
            self._not_suspended.set()
            self._runs.restart(stopped)

    async def with_database(self, work: Callable[[SqlEngine], T]) -> T:
        """Do something with the engine's database between two of its own writes, launched or not."""
        return await self._call(work, self._database)

    async def close(self) -> None:
        """Stop within a bound. Workflows in flight are interrupted where they stand and go on at the next launch."""
        if not self._launched:
            return
        self._launched = False
        await self._runs.stop_all(self._engine.tasks())
        # The engine made its own threads the loop's, and takes them with it.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))
        stopped = threading.Thread(target=self._release, name="durable-stop", daemon=True)
        stopped.start()
        await asyncio.to_thread(stopped.join, DESTROY_SECONDS)
        if stopped.is_alive():
            _log.warning("The durable engine was still busy after %.0f s and was left behind", DESTROY_SECONDS)

    def _release(self) -> None:
        self._threads.shutdown()
        ran = self._engine.destroy()
        if self._lock and ran:
            checkpoint(self._database)
        self._database.dispose()
        if self._lock:
            self._lock.release()

    async def _call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        def run_function() -> T:
            return function(*args, **kwargs)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, run_function)
        except DBAPIError as error:
            raise describe_error(error, self._location) or error from error

    def _require_launched(self) -> None:
        if not self._launched:
            raise Unavailable("The durable engine is not running.")

    @staticmethod
    def _current_run() -> WorkflowRun:
        run = _run.get()
        if run is None:
            raise RuntimeError("Steps, sleeps and waits belong inside a workflow.")
        return run
