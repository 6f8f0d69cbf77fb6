"""Two of the engine's own writes, begin and end of a workflow, with statements built once instead of every time.

They write the same rows as the engine does, which a test compares, and are put in its place at the launch.
"""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import time
from collections.abc import Callable

import sqlalchemy as sa
from dbos._context import WorkflowIDReusePolicy, current_owner_xid
from dbos._error import DBOSConflictingWorkflowError
from dbos._schemas.system_database import SystemSchema
from dbos._sys_db import SystemDatabase, WorkflowStatuses, WorkflowStatusInternal
from sqlalchemy.dialects import postgresql, sqlite

from annabelle.core.tools import JsonObject

_workflows, _inputs, _outputs = (
    SystemSchema.workflow_status,
    SystemSchema.workflow_input,
    SystemSchema.workflow_output,
)
_NEVER_OURS = ("queue_name", "deduplication_id", "class_name", "config_name", "parent_workflow_id", "attributes")
_OURS = (
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


def _by_engine(table: sa.Table, build: Callable[[Insert], sa.Executable]) -> dict[str, sa.Executable]:
    return {"sqlite": build(sqlite.insert(table)), "postgresql": build(postgresql.insert(table))}


# A no-op update, so that a row which is there comes back unchanged.
_begin = _by_engine(
    _workflows,
    lambda insert: insert.on_conflict_do_update(
        index_elements=["workflow_uuid"], set_={"creator_xid": _workflows.c.creator_xid}
    ).returning(_workflows.c.status, _workflows.c.name, _workflows.c.creator_xid, _workflows.c.serialization),
)
_keep_input = _by_engine(_inputs, lambda insert: insert.on_conflict_do_nothing())
_end = (
    sa.update(_workflows)
    .where(
        _workflows.c.workflow_uuid == sa.bindparam("workflow"),
        _workflows.c.status == "PENDING",
        _workflows.c.owner_xid == sa.bindparam("owner"),
    )
    .values(
        status=sa.bindparam("new_status"),
        deduplication_id=None,
        owner_xid=None,
        updated_at=sa.bindparam("at"),
        completed_at=sa.bindparam("at"),
    )
)
_keep_output = _by_engine(
    _outputs,
    lambda insert: insert.on_conflict_do_update(
        index_elements=["workflow_uuid"], set_={"output": insert.excluded.output, "error": insert.excluded.error}
    ),
)


def take_shortcuts(system: SystemDatabase) -> None:
    """Put our two writes in the place of the engine's; what they do not cover goes the engine's way."""
    begin, end, dialect = system.init_workflow, system.update_workflow_outcome, system.engine.dialect.name

    def init_workflow(
        status: WorkflowStatusInternal, *, creator_xid: str | None, reuse_policy: WorkflowIDReusePolicy | None = None
    ) -> tuple[WorkflowStatuses, bool]:
        if creator_xid is None or reuse_policy is not None or any(status[name] is not None for name in _NEVER_OURS):
            return begin(status, creator_xid=creator_xid, reuse_policy=reuse_policy)
        row: JsonObject = {name: status[name] for name in _OURS}
        row |= {
            "application_version": status["app_version"],
            "application_id": status["app_id"],
            "recovery_attempts": 1,
            "creator_xid": creator_xid,
            "owner_xid": creator_xid,
        }
        with system.engine.begin() as connection:
            found = connection.execute(_begin[dialect], row).one()
            if found.name != status["name"]:
                raise DBOSConflictingWorkflowError(status["workflow_uuid"], f"it belongs to {found.name}")
            kept = {"workflow_uuid": status["workflow_uuid"], "inputs": status["inputs"]}
            connection.execute(_keep_input[dialect], kept)
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
            if connection.execute(_end, change).rowcount == 0:
                return False
            connection.execute(_keep_output[dialect], {"workflow_uuid": workflow_id, "output": output, "error": error})
        return True

    for shortcut in (init_workflow, update_workflow_outcome):
        setattr(system, shortcut.__name__, shortcut)
