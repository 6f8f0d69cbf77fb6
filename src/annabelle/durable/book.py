"""The engine's tables, read and written with statements that are built once: a step costs a third of what it would."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

import sqlalchemy as sa
from dbos import Serializer
from dbos._error import DBOSWorkflowConflictIDError
from dbos._schemas.system_database import SystemSchema
from sqlalchemy.dialects import postgresql, sqlite

from annabelle.core.tools import JsonObject
from annabelle.durable.run import FIRST_NUMBER

_RUNNING: Final = ("PENDING", "ENQUEUED", "DELAYED")

_steps, _workflows, _outputs = (
    SystemSchema.operation_outputs,
    SystemSchema.workflow_status,
    SystemSchema.workflow_output,
)

# Held until the step is committed, so that no other process can take the workflow over in between.
_owner = (
    sa.select(_workflows.c.owner_xid)
    .where(_workflows.c.workflow_uuid == sa.bindparam("workflow"))
    .with_for_update(key_share=True)
)
# A row that is there already is the same step: a commit whose answer was lost, written again.
_insert_step = {
    "sqlite": sqlite.insert(_steps).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(_steps).on_conflict_do_nothing(),
}
_recorded = sa.select(_steps.c.function_id, _steps.c.function_name, _steps.c.output).where(
    _steps.c.workflow_uuid == sa.bindparam("workflow")
)
_state = (
    sa.select(_workflows.c.status, sa.func.coalesce(_outputs.c.output, _workflows.c.output))
    .select_from(_workflows.outerjoin(_outputs, _workflows.c.workflow_uuid == _outputs.c.workflow_uuid))
    .where(_workflows.c.workflow_uuid == sa.bindparam("workflow"))
)
_pending = (
    sa.select(_workflows.c.workflow_uuid, _workflows.c.name)
    .where(_workflows.c.status.in_(_RUNNING))
    .order_by(_workflows.c.created_at, _workflows.c.workflow_uuid)
)
_ended = (
    sa.select(_workflows.c.workflow_uuid)
    .where(_workflows.c.status.not_in(_RUNNING), _workflows.c.updated_at < sa.bindparam("before"))
    .limit(sa.bindparam("at_most"))
)


@dataclass(frozen=True, slots=True)
class Execution:
    """The run of a workflow that the engine has given to this process."""

    workflow_id: str
    owner_token: str


class Book:
    """What the engine has written down. All methods block."""

    def __init__(self, engine: sa.Engine, application: str, serializer: Serializer) -> None:
        self._engine, self._application, self._serializer = engine, application, serializer

    def record(self, run: Execution, number: int, key: str, outcome: JsonObject, started_ms: int) -> None:
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
            if connection.execute(_owner, {"workflow": run.workflow_id}).scalar() != run.owner_token:
                raise DBOSWorkflowConflictIDError(run.workflow_id)
            connection.execute(_insert_step[connection.dialect.name], values)

    def recorded(self, workflow_id: str) -> tuple[dict[str, JsonObject], int]:
        """Every finished step of a workflow by its key, and the highest number among them."""
        with self._engine.begin() as connection:
            rows = connection.execute(_recorded, {"workflow": workflow_id}).all()
        steps = {str(row[1]): cast("JsonObject", json.loads(row[2])) for row in rows if row[0] >= FIRST_NUMBER}
        return steps, max((int(row[0]) for row in rows), default=0)

    def state(self, workflow_id: str) -> tuple[str, JsonObject | None] | None:
        """The engine's word for how a workflow stands, and its outcome when it has ended by itself."""
        with self._engine.begin() as connection:
            row = connection.execute(_state, {"workflow": workflow_id}).first()
        if row is None:
            return None
        output = cast("str | None", row[1])
        return str(row[0]), None if output is None else cast("JsonObject", json.loads(output))

    def pending(self) -> list[tuple[str, str]]:
        """Id and name of every workflow that has not ended, oldest first."""
        with self._engine.begin() as connection:
            return [(str(row[0]), str(row[1])) for row in connection.execute(_pending)]

    def ended(self, before: datetime, at_most: int) -> list[str]:
        """Workflows that ended before a time."""
        parameters = {"before": int(before.timestamp() * 1000), "at_most": at_most}
        with self._engine.begin() as connection:
            return [str(row[0]) for row in connection.execute(_ended, parameters)]
