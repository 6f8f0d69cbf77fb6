"""`/tasks`: work that agents delegated, in the background and for goals, and its results (THR-03)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, cast

from fastapi import Path, Query
from pydantic import Field
from sqlalchemy import Connection

from annabelle.agents.task import find_task_thread, result_note_id
from annabelle.core.errors import NotFound
from annabelle.hub.api.agents import ExecutionLock, load_lock
from annabelle.hub.api.endpoint import ID_SHAPE, ApiAnswer, ApiRouter, Caller, TheHub, document
from annabelle.hub.context import HubContext
from annabelle.store import goals, tasks
from annabelle.store.tasks import StoredTask, TaskKind, TaskState

router = ApiRouter("tasks")
TaskId = Annotated[str, Path(pattern=ID_SHAPE, examples=["task_01k9zq3v7k0000000000000000"])]


class TaskView(ApiAnswer):
    """One task: a tool call in the background, a subagent's, or research for a goal."""

    task_id: str
    kind: TaskKind
    state: TaskState = Field(description="unknown: it was interrupted, and whether it took effect nobody knows")
    name: str
    agent_id: str | None
    goal_id: str | None
    thread_id: str | None = Field(description="Where its turns can be followed")
    created_at: datetime
    finished_at: datetime | None
    next_try_at: datetime | None = Field(description="When a paused one goes on by itself")
    failures: int
    progress: str | None = Field(description="What it says it is doing")
    result: str | None


class TaskNote(ApiAnswer):
    note_id: str
    title: str
    content: str
    read_from: list[str] | None = Field(description="Foreign content that was read before it was written")


class TaskDetails(TaskView):
    """A task with what it was given and what came of it."""

    instructions: str | None
    tools: list[str]
    running: ExecutionLock | None = Field(description="The turn that has it to itself now")
    note: TaskNote | None = Field(description="What a task of a goal found")


class TaskList(ApiAnswer):
    tasks: list[TaskView]


@router.get("/tasks", **document("Work that agents handed on", 404, 409))
async def list_tasks(
    hub: TheHub,
    caller: Caller,
    goal: Annotated[str | None, Query(max_length=200, description="Only of this goal: id, number or title")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="At most so many")] = 50,
) -> TaskList:
    """Your own tasks, newest first."""
    goal_id = None if goal is None else (await hub.services.goals.find(goal, caller.user_id)).id

    def read(conn: Connection) -> list[TaskView]:
        return [to_task_view(conn, one) for one in tasks.list_tasks(conn, caller.user_id, limit, goal_id)]

    return TaskList(tasks=await hub.storage.database.read(read))


@router.get("/tasks/{task_id}", **document("One task", 404))
async def get_task(task_id: TaskId, hub: TheHub, caller: Caller) -> TaskDetails:
    return await _load_details(hub, task_id, caller.user_id)


@router.post("/tasks/{task_id}/retry", **document("Try a task of a goal again", 404, 409))
async def retry_task(task_id: TaskId, hub: TheHub, caller: Caller) -> TaskDetails:
    """One that is paused or was cancelled. A goal that is archived has to be reopened first."""
    await hub.services.goals.retry_task(task_id, caller.user_id)
    return await _load_details(hub, task_id, caller.user_id)


@router.post("/tasks/{task_id}/cancel", **document("Stop a task of a goal", 404, 409))
async def cancel_task(task_id: TaskId, hub: TheHub, caller: Caller) -> TaskDetails:
    """Its turn ends. One that has ended stays as it is."""
    await hub.services.goals.cancel_task(task_id, caller.user_id)
    return await _load_details(hub, task_id, caller.user_id)


def to_task_view(conn: Connection, task: StoredTask) -> TaskView:
    result = task.result or {}
    return TaskView.from_row(
        task,
        task_id=task.id,
        thread_id=_find_thread_id(conn, task),
        progress=result.get("progress"),
        result=result.get("text"),
    )


async def _load_details(hub: HubContext, task_id: str, user_id: str) -> TaskDetails:
    def read(conn: Connection) -> TaskDetails:
        task = tasks.get_task(conn, task_id, user_id)
        view = to_task_view(conn, task)
        return TaskDetails(
            **view.model_dump(),
            instructions=cast("str | None", task.request.get("instructions")),
            tools=cast("list[str]", task.request.get("tools") or []),
            running=None if task.kind != "goal" or view.thread_id is None else load_lock(conn, view.thread_id),
            note=_find_note(conn, task),
        )

    return await hub.storage.database.read(read)


def _find_thread_id(conn: Connection, task: StoredTask) -> str | None:
    """A task of a goal has a thread of its own, others that of the message they came from."""
    if task.kind != "goal":
        return task.thread_id
    found = find_task_thread(conn, task)
    return None if found is None else found.id


def _find_note(conn: Connection, task: StoredTask) -> TaskNote | None:
    try:
        note = goals.get_note(conn, result_note_id(task.id), task.user_id)
    except NotFound:  # it found nothing yet, or the note was deleted
        return None
    return TaskNote.from_row(note, note_id=note.id)
