"""`GET /tasks`: work that agents delegated, and its results."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Query
from pydantic import Field

from annabelle.hub.api.endpoint import ApiAnswer, ApiRouter, Caller, TheHub, document
from annabelle.store import tasks
from annabelle.store.tasks import StoredTask, TaskKind, TaskState

router = ApiRouter("tasks")


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


class TaskList(ApiAnswer):
    tasks: list[TaskView]


@router.get("/tasks", **document("Work that agents handed on"))
async def list_tasks(
    hub: TheHub, caller: Caller, limit: Annotated[int, Query(ge=1, le=500, description="At most so many")] = 50
) -> TaskList:
    """Your own tasks, newest first."""
    found = await hub.storage.database.read(lambda conn: tasks.list_tasks(conn, caller.user_id, limit))
    return TaskList(tasks=[_to_view(task) for task in found])


def _to_view(task: StoredTask) -> TaskView:
    result = None if task.result is None else task.result.get("text")
    return TaskView.from_row(task, task_id=task.id, result=result)
