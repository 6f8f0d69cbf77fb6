"""Everything that uses DBOS's private APIs, in one file: start and stop, its tables, and two of its writes with
prebuilt statements. The version is pinned because of it.
"""

# pyright: reportPrivateUsage=false
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

import sqlalchemy as sa
from dbos import DBOS, DBOSConfig, Serializer, SetWorkflowID
from dbos._context import WorkflowIDReusePolicy, _dbos_context_var, current_owner_xid, get_local_dbos_context
from dbos._error import DBOSConflictingWorkflowError, DBOSException, DBOSWorkflowConflictIDError
from dbos._queue import Queue
from dbos._schemas.system_database import SystemSchema
from dbos._sys_db import SystemDatabase, WorkflowStatuses, WorkflowStatusInternal
from dbos._utils import INTERNAL_QUEUE_NAME
from sqlalchemy.dialects import postgresql, sqlite

from annabelle.core.tools import JsonObject
from annabelle.durable.steps import FIRST_NUMBER, JsonSerializer

_RUNNING: Final = ("PENDING", "ENQUEUED", "DELAYED")

_step_table, _workflow_table, _output_table = (
    SystemSchema.operation_outputs,
    SystemSchema.workflow_status,
    SystemSchema.workflow_output,
)

# Held until the step is committed, so that no other process can take the workflow over in between.
_select_owner = (
    sa.select(_workflow_table.c.owner_xid)
    .where(_workflow_table.c.workflow_uuid == sa.bindparam("workflow"))
    .with_for_update(key_share=True)
)
# A row that is there already is the same step: a commit whose answer was lost, written again.
_insert_step = {
    "sqlite": sqlite.insert(_step_table).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(_step_table).on_conflict_do_nothing(),
}
_select_steps = sa.select(_step_table.c.function_id, _step_table.c.function_name, _step_table.c.output).where(
    _step_table.c.workflow_uuid == sa.bindparam("workflow")
)
_select_state = (
    sa.select(_workflow_table.c.status, sa.func.coalesce(_output_table.c.output, _workflow_table.c.output))
    .select_from(
        _workflow_table.outerjoin(_output_table, _workflow_table.c.workflow_uuid == _output_table.c.workflow_uuid)
    )
    .where(_workflow_table.c.workflow_uuid == sa.bindparam("workflow"))
)
_select_pending = (
    sa.select(_workflow_table.c.workflow_uuid, _workflow_table.c.name)
    .where(_workflow_table.c.status.in_(_RUNNING))
    .order_by(_workflow_table.c.created_at, _workflow_table.c.workflow_uuid)
)
_select_ended = (
    sa.select(_workflow_table.c.workflow_uuid)
    .where(_workflow_table.c.status.not_in(_RUNNING), _workflow_table.c.updated_at < sa.bindparam("before"))
    .limit(sa.bindparam("at_most"))
)


@dataclass(frozen=True, slots=True)
class WorkflowExecution:
    """The run of a workflow that the engine has given to this process."""

    workflow_id: str
    owner_token: str


class StepLog:
    """What the engine has written down. All methods block."""

    def __init__(self, engine: sa.Engine, application: str, serializer: Serializer) -> None:
        self._engine, self._application, self._serializer = engine, application, serializer

    def write_step(self, run: WorkflowExecution, number: int, key: str, outcome: JsonObject, started_ms: int) -> None:
        """Write a finished step down. Fails when this process no longer owns the workflow."""
        ended_ms = int(time.time() * 1000)
        values: JsonObject = {
            "workflow_uuid": run.workflow_id,
            "function_id": number,
            "function_name": key,
            "output": self._serializer.serialize(outcome),
            "serialization": self._serializer.name(),
            "started_at_epoch_ms": started_ms,
            "completed_at_epoch_ms": ended_ms,
            "application_name": self._application,
            "retention_timestamp": ended_ms,
        }
        with self._engine.begin() as connection:
            if connection.execute(_select_owner, {"workflow": run.workflow_id}).scalar() != run.owner_token:
                raise DBOSWorkflowConflictIDError(run.workflow_id)
            connection.execute(_insert_step[connection.dialect.name], values)

    def read_steps(self, workflow_id: str) -> tuple[dict[str, JsonObject], int]:
        """Every finished step of a workflow by its key, and the highest number among them."""
        with self._engine.begin() as connection:
            rows = connection.execute(_select_steps, {"workflow": workflow_id}).all()
        steps = {str(row[1]): cast("JsonObject", json.loads(row[2])) for row in rows if row[0] >= FIRST_NUMBER}
        return steps, max((int(row[0]) for row in rows), default=0)

    def read_state(self, workflow_id: str) -> tuple[str, JsonObject | None] | None:
        """The engine's word for how a workflow stands, and its outcome when it has ended by itself."""
        with self._engine.begin() as connection:
            row = connection.execute(_select_state, {"workflow": workflow_id}).first()
        if row is None:
            return None
        output = cast("str | None", row[1])
        return str(row[0]), None if output is None else cast("JsonObject", json.loads(output))

    def list_pending(self) -> list[tuple[str, str]]:
        """Id and name of every workflow that has not ended, oldest first."""
        with self._engine.begin() as connection:
            return [(str(row[0]), str(row[1])) for row in connection.execute(_select_pending)]

    def list_ended(self, before: datetime, at_most: int) -> list[str]:
        """Workflows that ended before a time."""
        parameters = {"before": int(before.timestamp() * 1000), "at_most": at_most}
        with self._engine.begin() as connection:
            return [str(row[0]) for row in connection.execute(_select_ended, parameters)]


_patched_workflows, _patched_inputs, _patched_outputs = (
    SystemSchema.workflow_status,
    SystemSchema.workflow_input,
    SystemSchema.workflow_output,
)
_UNSUPPORTED_COLUMNS = (
    "queue_name",
    "deduplication_id",
    "class_name",
    "config_name",
    "parent_workflow_id",
    "attributes",
)
_COPIED_COLUMNS = (
    "workflow_uuid",
    "status",
    "name",
    "executor_id",
    "priority",
    "serialization",
    "is_debounced",
    "application_name",
    "workflow_timeout_ms",
    "workflow_deadline_epoch_ms",
)

Insert = sqlite.Insert | postgresql.Insert


def _build_per_dialect(table: sa.Table, build: Callable[[Insert], sa.Executable]) -> dict[str, sa.Executable]:
    return {"sqlite": build(sqlite.insert(table)), "postgresql": build(postgresql.insert(table))}


# A no-op update, so that a row which is there comes back unchanged.
_insert_workflow = _build_per_dialect(
    _patched_workflows,
    lambda insert: insert.on_conflict_do_update(
        index_elements=["workflow_uuid"], set_={"creator_xid": _patched_workflows.c.creator_xid}
    ).returning(
        _patched_workflows.c.status,
        _patched_workflows.c.name,
        _patched_workflows.c.creator_xid,
        _patched_workflows.c.serialization,
    ),
)
_insert_input = _build_per_dialect(_patched_inputs, lambda insert: insert.on_conflict_do_nothing())
_update_outcome = (
    sa.update(_patched_workflows)
    .where(
        _patched_workflows.c.workflow_uuid == sa.bindparam("workflow"),
        _patched_workflows.c.status == "PENDING",
        _patched_workflows.c.owner_xid == sa.bindparam("owner"),
    )
    .values(
        status=sa.bindparam("new_status"),
        deduplication_id=None,
        owner_xid=None,
        updated_at=sa.bindparam("at"),
        completed_at=sa.bindparam("at"),
    )
)
_insert_output = _build_per_dialect(
    _patched_outputs,
    lambda insert: insert.on_conflict_do_update(
        index_elements=["workflow_uuid"], set_={"output": insert.excluded.output, "error": insert.excluded.error}
    ),
)


def install_patches(system: SystemDatabase) -> None:
    """Put our two writes in the place of the engine's; what they do not cover goes the engine's way."""
    begin, end, dialect = system.init_workflow, system.update_workflow_outcome, system.engine.dialect.name

    def init_workflow(
        status: WorkflowStatusInternal, *, creator_xid: str | None, reuse_policy: WorkflowIDReusePolicy | None = None
    ) -> tuple[WorkflowStatuses, bool]:
        if (
            creator_xid is None
            or reuse_policy is not None
            or any(status[name] is not None for name in _UNSUPPORTED_COLUMNS)
        ):
            return begin(status, creator_xid=creator_xid, reuse_policy=reuse_policy)
        row: JsonObject = {name: status[name] for name in _COPIED_COLUMNS}
        row |= {
            "application_version": status["app_version"],
            "application_id": status["app_id"],
            "recovery_attempts": 1,
            "creator_xid": creator_xid,
            "owner_xid": creator_xid,
        }
        with system.engine.begin() as connection:
            found = connection.execute(_insert_workflow[dialect], row).one()
            if found.name != status["name"]:
                raise DBOSConflictingWorkflowError(status["workflow_uuid"], f"it belongs to {found.name}")
            kept = {"workflow_uuid": status["workflow_uuid"], "inputs": status["inputs"]}
            connection.execute(_insert_input[dialect], kept)
        status["serialization"] = found.serialization
        return found.status, found.creator_xid == creator_xid

    def update_workflow_outcome(
        workflow_id: str,
        status: WorkflowStatuses,
        *,
        output: str | None = None,
        error: str | None = None,
        owner_xid: str | None = None,
    ) -> bool:
        owner = owner_xid or current_owner_xid(workflow_id)
        if owner is None:
            return end(workflow_id, status, output=output, error=error)
        change = {"workflow": workflow_id, "owner": owner, "new_status": status, "at": int(time.time() * 1000)}
        with system.engine.begin() as connection:
            if connection.execute(_update_outcome, change).rowcount == 0:
                return False
            connection.execute(
                _insert_output[dialect], {"workflow_uuid": workflow_id, "output": output, "error": error}
            )
        return True

    for shortcut in (init_workflow, update_workflow_outcome):
        setattr(system, shortcut.__name__, shortcut)


# Said of every workflow that is interrupted by a stop or a cancel, which is what was asked for.
_EXPECTED = (
    "Asyncio task cancelled",
    "is no longer owned by this execution",
    "was cancelled during execution",
)


class _ExpectedMessageFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not any(known in record.getMessage() for known in _EXPECTED)


def redirect_engine_log() -> None:
    """Send the engine's warnings through our logging instead of straight to the terminal. Safe to call again."""
    logger = logging.getLogger("dbos")
    if not any(isinstance(known, _ExpectedMessageFilter) for known in logger.filters):
        logger.addFilter(_ExpectedMessageFilter())
    if not logger.handlers:
        # With a handler present, the engine does not add its own for the console.
        logger.addHandler(logging.NullHandler())
    logger.propagate = True


AlreadyAnotherWorkflow = DBOSConflictingWorkflowError
EngineError = DBOSException
"""What the engine raises to control a workflow from outside: it must pass through a workflow's body untouched."""

WorkflowBody = Callable[[JsonObject], Awaitable[JsonObject]]

RECOVERY_POLL_SECONDS: Final = 0.05
IDLE_POLL_SECONDS: Final = 5.0
THREAD_EXIT_SECONDS: Final = 0.25
WORKER_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class EngineIdentity:
    """Who this process is to the engine. All of it must stay the same over restarts, or nothing is recovered."""

    name: str
    executor_id: str
    application_version: str
    schema: str


def _return_nothing(*_args: object, **_names: object) -> list[str]:
    return []


class DbosEngine:
    """DBOS, started and stopped, with the few verbs the rest of this room is made from. Methods block unless async."""

    def __init__(self, identity: EngineIdentity, database: sa.Engine) -> None:
        self._identity, self._database = identity, database
        self._workflows: dict[str, WorkflowBody] = {}
        self._dbos: DBOS | None = None
        self._step_log: StepLog | None = None
        self._serializer = JsonSerializer()

    def register(self, name: str, body: WorkflowBody) -> None:
        """Make a workflow known; only before launch, or its pending runs would not be recovered."""
        if self._dbos is not None:
            raise RuntimeError(f"The workflow {name} was registered after the launch.")
        if name in self._workflows:
            raise RuntimeError(f"The workflow {name} is registered twice.")
        self._workflows[name] = body

    def launch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the engine; workflows that were pending continue on the given loop."""
        redirect_engine_log()
        config: DBOSConfig = {
            "name": self._identity.name,
            "executor_id": self._identity.executor_id,
            "application_version": self._identity.application_version,
            "system_database_engine": self._database,
            "dbos_system_schema": self._identity.schema,
            "serializer": self._serializer,
            "enable_otlp": False,
            "log_level": "WARNING",
            "max_executor_threads": WORKER_THREADS,
            "notification_listener_polling_interval_sec": THREAD_EXIT_SECONDS,
            "notification_coalesce_sec": THREAD_EXIT_SECONDS,
        }
        dbos = DBOS(config=config)
        try:
            self._workflows = {name: self._decorate(name, body) for name, body in self._workflows.items()}
            # Launched from a worker thread, so the engine can not find the loop by itself.
            dbos._background_event_loop._main_loop = loop
            self._set_poll_interval(dbos, RECOVERY_POLL_SECONDS)
            DBOS.launch()
        except BaseException:
            DBOS.destroy(destroy_registry=True)
            raise
        # We use none of the engine's queues, delays and deadlines, so it need not look for them every second.
        system = dbos._sys_db
        for unused in ("list_queues", "transition_delayed_workflows", "cancel_timed_out_workflows"):
            setattr(system, unused, _return_nothing)
        install_patches(system)
        self._step_log = StepLog(system.engine, self._identity.name, self._serializer)
        self._dbos = dbos

    @property
    def step_log(self) -> StepLog:
        assert self._step_log is not None, "the book is opened at the launch"
        return self._step_log

    @staticmethod
    def _decorate(name: str, body: WorkflowBody) -> WorkflowBody:
        # Without a limit on recoveries: a turn that many crashes hit is still owed an answer.
        decorate = cast("Callable[[WorkflowBody], WorkflowBody]", DBOS.workflow(name=name, max_recovery_attempts=None))
        return decorate(body)

    @staticmethod
    def _set_poll_interval(dbos: DBOS, seconds: float) -> None:
        queue: Queue = dbos._registry.get_internal_queue()
        queue._polling_interval_sec = seconds

    def poll_rarely(self) -> None:
        """Look for recovered workflows seldom from now on: only an interrupted one still comes through the queue."""
        self._set_poll_interval(self._require_running(), IDLE_POLL_SECONDS)

    def requeue(self, workflow_id: str) -> None:
        """Run a pending workflow of this process again, from its record."""
        self._system_database().reenqueue_for_recovery(workflow_id, [self._identity.executor_id], INTERNAL_QUEUE_NAME)

    def destroy(self) -> bool:
        """Stop every thread of the engine. What has not finished stays pending for the next launch. Whether it ran."""
        if self._dbos is None:
            return False
        self._dbos = None
        DBOS.destroy(destroy_registry=True)
        return True

    def tasks(self) -> set[asyncio.Task[object]]:
        return set(self._require_running()._workflow_tasks)

    async def start(self, name: str, workflow_id: str, argument: JsonObject) -> None:
        """Begin a workflow unless one of this id was begun before; run it in a context of its own."""
        # A workflow that starts another does not become its parent: ids alone make starts idempotent.
        _dbos_context_var.set(None)
        with SetWorkflowID(workflow_id):
            await DBOS.start_workflow_async(self._workflows[name], argument)  # pyright: ignore[reportArgumentType]

    def current_execution(self) -> WorkflowExecution:
        """The execution that the calling workflow body belongs to."""
        context = get_local_dbos_context()
        assert context is not None, "a workflow body runs in the engine's context"
        assert context.owner_xid is not None, "the engine gives every execution a token"
        return WorkflowExecution(context.workflow_id, context.owner_xid)

    async def receive(self, topic: str, timeout: float) -> object:
        return await DBOS.recv_async(topic, timeout)

    async def send(self, workflow_id: str, topic: str, payload: object) -> None:
        await DBOS.send_async(workflow_id, payload, topic)
        # One process owns the file, so whoever waits is here and need not wait for the next poll.
        waiting = self._system_database().notifications_map.get(f"{workflow_id}::{topic}")
        if waiting is not None:
            waiting.set()

    def cancel(self, workflow_id: str) -> None:
        self._system_database().cancel_workflows([workflow_id])

    def delete_ended(self, before: datetime, at_most: int) -> None:
        """Delete workflows that ended before a time, with their steps."""
        ended = self.step_log.list_ended(before, at_most)
        if ended:
            self._system_database().delete_workflows(ended)

    def _require_running(self) -> DBOS:
        if self._dbos is None:
            raise RuntimeError("The durable engine is not running.")
        return self._dbos

    def _system_database(self) -> SystemDatabase:
        return self._require_running()._sys_db
