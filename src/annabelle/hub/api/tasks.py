"""`GET /tasks`: work that agents delegated, and its results."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, cast

from fastapi import APIRouter, Query
from pydantic import Field

from annabelle.hub.api.endpoint import ApiAnswer, Caller, TheHub, error_responses
from annabelle.store import tasks
from annabelle.store.tasks import StoredTask, TaskKind, TaskState

router = APIRouter(tags=["tasks"])


class TaskView(ApiAnswer):
    """One task: a tool call in the background, or a subagent's."""

    task_id: str
    kind: TaskKind
    state: TaskState = Field(description="unknown: it was interrupted, and whether it took effect nobody knows")
    name: str
    agent_id: str | None
    thread_id: str | None
    created_at: datetime
    finished_at: datetime | None
    result: str | None

    @classmethod
    def from_task(cls, task: StoredTask) -> TaskView:
        return cls(
            task_id=task.id,
            kind=task.kind,
            state=task.state,
            name=task.name,
            agent_id=task.agent_id,
            thread_id=task.thread_id,
            created_at=task.created_at,
            finished_at=task.finished_at,
            result=None if task.result is None else cast("str", task.result.get("text")),
        )


class TaskList(ApiAnswer):
    tasks: list[TaskView]


@router.get("/tasks", operation_id="list_tasks", responses=error_responses(), summary="Work that agents handed on")
async def list_tasks(
    hub: TheHub, caller: Caller, limit: Annotated[int, Query(ge=1, le=500, description="At most so many")] = 50
) -> TaskList:
    """Your own tasks, newest first."""
    found = await hub.storage.database.read(lambda conn: tasks.list_tasks(conn, caller.user_id, limit))
    return TaskList(tasks=[TaskView.from_task(task) for task in found])
