"""Durable workflows of one process: a started workflow always finishes, and a finished step never runs again."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, ParamSpec, TypeVar, cast

from dbos import DBOS, DBOSClient, DBOSConfig, SetWorkflowID, error as dbos_error
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from annabelle.core.backoff import RetryPolicy
from annabelle.core.errors import AnnabelleError, Conflict, NotFound, TurnCancelled, Unavailable
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.durable.dbos_patches import StepLog, WorkflowExecution, current_execution, stop_unused_polls
from annabelle.durable.steps import (
    ERROR,
    FIRST_NUMBER,
    JsonSerializer,
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
POLL_SECONDS: Final = 0.1
START_SECONDS: Final = 30.0
KEEP_DAYS: Final = 7
FORGET_AT_ONCE: Final = 5000
FORGET_SECONDS: Final = 6 * 3600.0
THREAD_EXIT_SECONDS: Final = 0.25
WORKER_THREADS: Final = 16

_RUNNING: Final = ["PENDING", "ENQUEUED", "DELAYED"]
# DBOS logs these for every workflow that is stopped or cancelled on purpose.
_EXPECTED_MESSAGES: Final = (
    "Asyncio task cancelled",
    "is no longer owned by this execution",
    "was cancelled during execution",
)

_run: contextvars.ContextVar[WorkflowRun | None] = contextvars.ContextVar("annabelle_durable_run", default=None)
_just_started: contextvars.ContextVar[str | None] = contextvars.ContextVar("annabelle_durable_started", default=None)


@dataclass(frozen=True, slots=True)
class PendingWorkflow:
    workflow_id: str
    name: str


class Durable:
    """One per process. Register workflows, launch, start. Inside a workflow, do everything with an effect in steps."""

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
        _route_dbos_log()
        serializer = JsonSerializer()
        # Name, executor and version must not change between restarts, or nothing is recovered.
        self._config: DBOSConfig = {
            "name": name,
            "executor_id": executor_id,
            "application_version": application_version,
            "system_database_engine": self._database,
            "dbos_system_schema": schema,
            "serializer": serializer,
            "enable_otlp": False,
            "log_level": "WARNING",
            "max_executor_threads": WORKER_THREADS,
            "notification_listener_polling_interval_sec": THREAD_EXIT_SECONDS,
            "notification_coalesce_sec": THREAD_EXIT_SECONDS,
        }
        # The client reports database errors, where DBOS itself would retry forever.
        self._client = DBOSClient(
            system_database_engine=self._database,
            dbos_system_schema=schema,
            serializer=serializer,
            application_name=name,
            lazy=True,
            retry_connection_errors=False,
        )
        self._step_log = StepLog(self._database, schema, name, serializer)
        self._workflows: dict[str, Workflow] = {}
        # SQLite has one writer at a time, and waiting for a thread is cheaper than waiting for its lock.
        self._threads = ThreadPoolExecutor(1 if self._lock else 4, thread_name_prefix="durable")
        self._runs = RunningWorkflows(lambda workflow_id: self._call(self._restart, workflow_id))
        self._restarting = threading.Lock()
        self._created = self._launched = False
        self._outside_workflows = contextvars.copy_context()
        self._not_suspended = asyncio.Event()
        self._not_suspended.set()

    def workflow(self, name: str) -> Callable[[Workflow], Workflow]:
        """Registers `async def fn(argument) -> result`, both JSON objects. The name is stored: never change it."""

        def register(function: Workflow) -> Workflow:
            if self._launched:
                raise RuntimeError(f"The workflow {name} was registered after the launch.")
            if name in self._workflows:
                raise RuntimeError(f"The workflow {name} is registered twice.")
            self._workflows[name] = self._body(function)
            return function

        return register

    def _body(self, function: Workflow) -> Workflow:
        async def body(argument: JsonObject) -> JsonObject:
            if not self._launched:
                raise asyncio.CancelledError  # dequeued during close; the next launch runs it
            execution = current_execution()
            self._runs.register_current(execution.workflow_id)
            await self._not_suspended.wait()
            _run.set(await self._read_run(execution))
            try:
                return success_outcome(await function(argument))
            except AnnabelleError as error:
                return failure_outcome(error)
            except dbos_error.DBOSException:
                raise  # DBOS stops a workflow from outside this way
            except Exception as error:  # noqa: BLE001  the edge of a workflow: waiters must see an end
                _log.exception("The workflow %s failed unexpectedly", execution.workflow_id)
                return failure_outcome(AnnabelleError(f"It failed unexpectedly: {type(error).__name__}: {error}."))

        return body

    async def _read_run(self, execution: WorkflowExecution) -> WorkflowRun:
        record = StepRecorder(self._step_log, self._threads, execution, self._location, self._runs.interrupt)
        if _just_started.get() == execution.workflow_id:
            return WorkflowRun(record, {})  # just started: nothing is recorded
        try:
            steps = await self._call(self._client.list_workflow_steps, execution.workflow_id)
        except AnnabelleError as error:
            _log.warning("%s cannot go on yet: %s", execution.workflow_id, error.message)
            self._runs.interrupt(execution.workflow_id)
            raise asyncio.CancelledError from error
        ours = (step for step in steps if step["function_id"] >= FIRST_NUMBER)
        recorded = {step["function_name"]: cast("JsonObject", step["output"]) for step in ours}
        return WorkflowRun(record, recorded, max([FIRST_NUMBER, *(step["function_id"] + 1 for step in steps)]))

    async def launch(self) -> None:
        """Locks the database and continues every unfinished workflow."""
        if self._lock:
            self._lock.acquire()
        try:
            await asyncio.to_thread(self._probe)
            self._launch_dbos()
        except BaseException as error:
            await asyncio.to_thread(self._release, launched=False)
            if isinstance(error, DBAPIError) and (known := describe_error(error, self._location)):
                raise known from error
            raise
        self._runs.run_in_background(self._delete_old())

    def _probe(self) -> None:
        """Fails early on database errors, which DBOS would log at length or retry forever."""
        with self._database.begin() as connection:
            connection.exec_driver_sql("SELECT 1")

    def _launch_dbos(self) -> None:
        """Launches on the loop's thread: DBOS runs recovered workflows on the loop it was launched from."""
        dbos = DBOS(config=self._config)
        self._created = True
        # Unlimited recoveries: a turn hit by many crashes still needs an answer.
        self._workflows = {
            name: DBOS.workflow(name=name, max_recovery_attempts=None)(body) for name, body in self._workflows.items()
        }
        DBOS.launch()
        stop_unused_polls(dbos)
        self._launched = True

    async def _delete_old(self) -> None:
        """Deletes old ended workflows from time to time: a process may run for months."""
        while True:
            try:
                await self._call(self._delete_ended, now() - timedelta(days=KEEP_DAYS))
            except AnnabelleError as error:
                _log.warning("Old workflows were not deleted: %s", error.message)
            await asyncio.sleep(FORGET_SECONDS)

    def _delete_ended(self, before: datetime) -> None:
        ended = self._client.list_workflows(
            completed_before=before.isoformat(), limit=FORGET_AT_ONCE, load_input=False, load_output=False
        )
        if ended:
            self._client.delete_workflows([found.workflow_id for found in ended])

    def _restart(self, workflow_id: str) -> None:
        """Runs a workflow again from its recorded steps, unless it was cancelled meanwhile."""
        with self._restarting:
            if self._client.list_workflows(
                workflow_ids=[workflow_id], status="PENDING", load_input=False, load_output=False
            ):
                self._client.resume_workflow(workflow_id)

    def _cancel(self, workflow_id: str) -> None:
        with self._restarting:
            self._client.cancel_workflow(workflow_id)

    async def start(self, workflow_name: str, workflow_id: str, argument: JsonObject) -> None:
        """Starts a workflow. Idempotent by id; it is on disk when this returns, and runs in the background."""
        self._require_launched()
        # A workflow that starts another is not its parent: ids alone make starts idempotent.
        context = contextvars.copy_context() if _run.get() is None else self._outside_workflows.copy()
        context.run(_just_started.set, workflow_id)
        starting = asyncio.create_task(self._start(workflow_name, workflow_id, argument), context=context)
        try:
            # Shielded: an interrupted start would be recorded as begun, but not run before the next launch.
            async with asyncio.timeout(START_SECONDS):
                await asyncio.shield(starting)
        except TimeoutError as error:
            raise Unavailable(f"The database {self._location.name} does not answer.", hint="Try again.") from error
        except DBAPIError as error:
            raise describe_error(error, self._location) or error from error
        except dbos_error.DBOSConflictingWorkflowError as error:
            raise Conflict(f"The id {workflow_id} belongs to another workflow.") from error

    async def _start(self, workflow_name: str, workflow_id: str, argument: JsonObject) -> None:
        with SetWorkflowID(workflow_id):
            await DBOS.start_workflow_async(self._workflows[workflow_name], argument)  # pyright: ignore[reportArgumentType]

    async def step(
        self, name: str, fn: StepFunction, *, retry: RetryPolicy | None = None, timeout: float | None = None
    ) -> object:
        """Runs something with an effect inside a workflow. Once finished, it is never run again, even after a crash.

        The result must be JSON. An AnnabelleError is recorded too and raised again as the same class. Steps may run
        concurrently if their names differ; a repeated name is counted.
        """
        return await self._current_run().step(name, fn, retry, timeout)

    async def sleep(self, seconds: float) -> None:
        """Waits inside a workflow; after a crash only for the remaining time."""
        await self._current_run().sleep(seconds)

    async def signal(self, workflow_id: str, topic: str, payload: object) -> None:
        """Sends a JSON value to a workflow that waits, or will wait, for this topic."""
        self._require_launched()
        try:
            await self._call(self._client.send, workflow_id, payload, topic)
        except dbos_error.DBOSNonExistentWorkflowError as error:
            raise NotFound(f"There is no workflow {workflow_id}.") from error

    async def wait(self, topic: str, timeout: float) -> object:
        """Waits inside a workflow for a signal; None on timeout, which keeps running across a crash."""
        self._current_run()
        return await DBOS.recv_async(topic, timeout)

    async def cancel(self, workflow_id: str) -> None:
        """Cancels a workflow, at once if it runs here. One that has ended stays as it is."""
        self._require_launched()
        await self._call(self._cancel, workflow_id)
        self._runs.stop(workflow_id)

    async def status(self, workflow_id: str) -> WorkflowState | None:
        """Returns the state of a workflow; None if it was never started."""
        found = await self._state(workflow_id)
        return None if found is None else found[0]

    async def result(self, workflow_id: str, timeout: float) -> JsonObject:
        """Returns a workflow's result or raises its error; Unavailable if it takes longer than `timeout`."""
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
        found = await self._call(self._client.list_workflows, workflow_ids=[workflow_id], load_input=False)
        if not found:
            return None
        status, outcome = found[0].status, found[0].output
        if status == "SUCCESS" and isinstance(outcome, dict):
            return ("failed" if ERROR in outcome else "done"), cast("JsonObject", outcome)
        if status in _RUNNING:
            return "running", None
        return ("cancelled" if status == "CANCELLED" else "failed"), None

    async def probe(self) -> None:
        """Raises Unavailable or StorageTrouble if nothing could be started now."""
        self._require_launched()
        await self._call(self._probe)

    async def pending(self) -> list[PendingWorkflow]:
        """Lists unfinished workflows, oldest first."""
        self._require_launched()
        found = await self._call(self._client.list_workflows, status=_RUNNING, load_input=False, load_output=False)
        found.sort(key=lambda workflow: (workflow.created_at, workflow.workflow_id))
        return [PendingWorkflow(workflow.workflow_id, workflow.name) for workflow in found]

    @contextlib.asynccontextmanager
    async def suspended(self) -> AsyncGenerator[None]:
        """Stops all workflows here while inside; afterwards they continue from their recorded steps."""
        stopped: set[str] = set()
        self._not_suspended.clear()
        try:
            stopped = await self._runs.pause()
            yield
        finally:
            self._not_suspended.set()
            self._runs.restart(stopped)

    async def with_database(self, work: Callable[[Engine], T]) -> T:
        """Runs `work` with DBOS's database between two of its writes, launched or not."""
        return await self._call(work, self._database)

    async def close(self) -> None:
        """Stops within a time limit. Running workflows are interrupted and continue at the next launch."""
        if not self._launched:
            return
        self._launched = False
        await self._runs.stop_all()
        # DBOS replaced the loop's default executor, and shuts it down.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))
        stopped = threading.Thread(target=self._release, kwargs={"launched": True}, name="durable-stop", daemon=True)
        stopped.start()
        await asyncio.to_thread(stopped.join, DESTROY_SECONDS)
        if stopped.is_alive():
            _log.warning("The durable engine was still busy after %.0f s and was left behind", DESTROY_SECONDS)

    def _release(self, *, launched: bool) -> None:
        self._threads.shutdown()
        if self._created:
            DBOS.destroy(destroy_registry=True)
        if self._lock and launched:
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


class _ExpectedMessageFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not any(expected in record.getMessage() for expected in _EXPECTED_MESSAGES)


def _route_dbos_log() -> None:
    """Routes DBOS's warnings through our logging instead of the terminal. Idempotent."""
    logger = logging.getLogger("dbos")
    logger.setLevel(logging.WARNING)
    if not any(isinstance(known, _ExpectedMessageFilter) for known in logger.filters):
        logger.addFilter(_ExpectedMessageFilter())
    if not logger.handlers:
        # DBOS adds a console handler only if there is none.
        logger.addHandler(logging.NullHandler())
    logger.propagate = True
