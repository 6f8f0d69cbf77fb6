"""The two places where DBOS's public API is not enough. DBOS's version is pinned because of this file.

**Steps** (`current_execution`, `StepLog`). A step through `DBOS.run_step_async` takes 2.8 to 3.2 ms of CPU; writing
the row with prebuilt statements takes 0.55 ms. A turn has four steps, so this saves 10 ms or more. It also ensures that
a finished step is stored while its workflow is being stopped, and that a step waits when the disk is full instead of
running again.

**Polls** (`stop_unused_polls`). DBOS polls for queues, delayed workflows and deadlines every second; we have none.
Without these polls an idle process takes 4 ms of CPU a second instead of 10.

CPU of the `turn` bench, relative to patches in all places named here (medians of 3 to 4 alternating runs on SQLite and
two busy x86-64 cores): 1.05 with these two, 1.07 with the first alone, 1.29 without any.

Patches that were not worth it: a workflow's first and last write (2 ms for both), reading states and steps, choosing
the event loop, waking waiters on a signal (up to 0.25 s later on SQLite), and how soon recovered workflows run after a
launch (1 s instead of 0.05 s).
"""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from dbos import DBOS, Serializer, error as dbos_error
from dbos._context import get_local_dbos_context
from sqlalchemy.dialects import postgresql, sqlite

from annabelle.core.tools import JsonObject

_STEP_COLUMNS: Final = (
    "workflow_uuid",
    "function_id",
    "function_name",
    "output",
    "serialization",
    "started_at_epoch_ms",
    "completed_at_epoch_ms",
    "application_name",
    "retention_timestamp",
)
_UNUSED_POLLS: Final = ("list_queues", "transition_delayed_workflows", "cancel_timed_out_workflows")


def stop_unused_polls(dbos: DBOS) -> None:
    """Disables queries that DBOS makes every second for features we do not use."""
    for name in _UNUSED_POLLS:
        assert callable(getattr(dbos._sys_db, name)), f"DBOS polls with {name}"
        setattr(dbos._sys_db, name, _find_nothing)


def _find_nothing(*_args: object, **_names: object) -> list[str]:
    return []


@dataclass(frozen=True, slots=True)
class WorkflowExecution:
    """An execution of a workflow that DBOS assigned to this process."""

    workflow_id: str
    owner_token: str


def current_execution() -> WorkflowExecution:
    context = get_local_dbos_context()
    assert context is not None, "a workflow body runs in the engine's context"
    assert context.owner_xid is not None, "the engine gives every execution a token"
    return WorkflowExecution(context.workflow_id, context.owner_xid)


class StepLog:
    """Writes finished steps into DBOS's table."""

    def __init__(self, engine: sa.Engine, schema: str, application: str, serializer: Serializer) -> None:
        self._engine, self._application, self._serializer = engine, application, serializer
        on_postgres = engine.dialect.name == "postgresql"
        inside = schema if on_postgres else None
        insert = postgresql.insert if on_postgres else sqlite.insert
        workflows = sa.table("workflow_status", sa.column("workflow_uuid"), sa.column("owner_xid"), schema=inside)
        steps = sa.table("operation_outputs", *map(sa.column, _STEP_COLUMNS), schema=inside)
        # Locked until the commit, so that no other process takes over the workflow in between.
        self._select_owner = (
            sa.select(workflows.c.owner_xid)
            .where(workflows.c.workflow_uuid == sa.bindparam("workflow"))
            .with_for_update(key_share=True)
        )
        # An existing row is the same step, whose first commit succeeded without an answer.
        self._insert_step = insert(steps).on_conflict_do_nothing()

    def write_step(self, run: WorkflowExecution, number: int, key: str, outcome: JsonObject, started_ms: int) -> None:
        """Writes a finished step. Blocks; fails if this process no longer owns the workflow."""
        ended_ms = int(time.time() * 1000)
        row = (
            run.workflow_id,
            number,
            key,
            self._serializer.serialize(outcome),
            self._serializer.name(),
            started_ms,
            ended_ms,
            self._application,
            ended_ms,
        )
        with self._engine.begin() as connection:
            if connection.execute(self._select_owner, {"workflow": run.workflow_id}).scalar() != run.owner_token:
                raise dbos_error.DBOSWorkflowConflictIDError(run.workflow_id)
            connection.execute(self._insert_step, dict(zip(_STEP_COLUMNS, row, strict=True)))
