"""Tasks that agents delegated, from request to result (RTR-05, I-26)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from sqlalchemy import Connection, RowMapping, bindparam, func, select, update

from annabelle.core.errors import NotFound, TooManyRequests
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.portable_sql import InsertNew
from annabelle.store.tables import tasks

TaskKind = Literal["tool_call", "subagent"]
TaskState = Literal["queued", "running", "done", "failed", "unknown"]
_OPEN = ("queued", "running")

_insert = InsertNew(tasks, ["id"], whole_rows=True)
_by_id = select(tasks).where(tasks.c.id == bindparam("id"))
_of_message = (
    select(tasks).where(tasks.c.message_id == bindparam("message_id")).order_by(tasks.c.created_at, tasks.c.id)
)
_begin = (
    update(tasks).where(tasks.c.id == bindparam("task"), tasks.c.state == "queued").values(state=bindparam("new_state"))
)
_finish = (
    update(tasks)
    .where(tasks.c.id == bindparam("task"), tasks.c.state.in_(_OPEN))
    .values(state=bindparam("new_state"), result=bindparam("new_result"), finished_at=bindparam("at"))
)


@dataclass(frozen=True, slots=True)
class NewTask:
    id: str
    kind: TaskKind
    user_id: str
    name: str
    request: JsonObject
    agent_id: str | None = None
    thread_id: str | None = None
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class StoredTask:
    id: str
    kind: TaskKind
    state: TaskState
    user_id: str
    agent_id: str | None
    thread_id: str | None
    message_id: str | None
    name: str
    request: JsonObject
    result: JsonObject | None
    created_at: datetime
    finished_at: datetime | None

    @property
    def open(self) -> bool:
        return self.state in _OPEN


def create_task(connection: Connection, new: NewTask, at_once: int | None = None) -> StoredTask:
    """Stores a task. The same id is the same task; `at_once` limits open tasks of this agent and kind."""
    known = connection.execute(_by_id, {"id": new.id}).mappings().first()
    if known is not None:
        return _task_from_row(known)
    if at_once is not None and _count_open(connection, new) >= at_once:
        raise TooManyRequests(
            f"{new.agent_id} has {at_once} at work already, which is the most.", hint="Wait until one has ended."
        )
    values: JsonObject = {
        "id": new.id,
        "kind": new.kind,
        "state": "queued",
        "user_id": new.user_id,
        "agent_id": new.agent_id,
        "thread_id": new.thread_id,
        "message_id": new.message_id,
        "name": new.name,
        "request": new.request,
        "created_at": now(),
    }
    inserted = _insert.insert(connection, values)
    return load_task(connection, new.id) if inserted is None else _task_from_row(inserted)


def begin_task(connection: Connection, task_id: str) -> bool:
    """Marks a queued task as running; returns whether it was queued."""
    return connection.execute(_begin, {"task": task_id, "new_state": "running"}).rowcount == 1


def finish_task(connection: Connection, task_id: str, state: TaskState, result: JsonObject) -> bool:
    """Stores how a task ended; returns False if it had ended before."""
    change: JsonObject = {"task": task_id, "new_state": state, "new_result": result, "at": now()}
    return connection.execute(_finish, change).rowcount == 1


def get_task(connection: Connection, task_id: str, user_id: str) -> StoredTask:
    """Returns a task of this person; NotFound for anyone else's."""
    task = load_task(connection, task_id)
    if task.user_id != user_id:
        raise NotFound(f"There is no task {task_id}.")
    return task


def load_task(connection: Connection, task_id: str) -> StoredTask:
    """Loads a task of any person, for internal use."""
    row = connection.execute(_by_id, {"id": task_id}).mappings().first()
    if row is None:
        raise NotFound(f"There is no task {task_id}.")
    return _task_from_row(row)


def list_unfinished_tasks(connection: Connection) -> list[StoredTask]:
    rows = connection.execute(
        select(tasks).where(tasks.c.state.in_(_OPEN)).order_by(tasks.c.created_at, tasks.c.id)
    ).mappings()
    return [_task_from_row(row) for row in rows]


def list_message_tasks(connection: Connection, message_id: str) -> list[StoredTask]:
    rows = connection.execute(_of_message, {"message_id": message_id}).mappings()
    return [_task_from_row(row) for row in rows]


def list_tasks(connection: Connection, user_id: str, limit: int = 50) -> list[StoredTask]:
    """Lists a person's tasks, newest first."""
    rows = connection.execute(
        select(tasks).where(tasks.c.user_id == user_id).order_by(tasks.c.created_at.desc(), tasks.c.id).limit(limit)
    ).mappings()
    return [_task_from_row(row) for row in rows]


def _count_open(connection: Connection, new: NewTask) -> int:
    query = select(func.count()).where(
        tasks.c.agent_id == new.agent_id, tasks.c.kind == new.kind, tasks.c.state.in_(_OPEN)
    )
    return int(connection.execute(query).scalar_one())


def _task_from_row(row: RowMapping) -> StoredTask:
    return StoredTask(
        id=str(row["id"]),
        kind=cast("TaskKind", row["kind"]),
        state=cast("TaskState", row["state"]),
        user_id=str(row["user_id"]),
        agent_id=cast("str | None", row["agent_id"]),
        thread_id=cast("str | None", row["thread_id"]),
        message_id=cast("str | None", row["message_id"]),
        name=str(row["name"]),
        request=cast("JsonObject", row["request"]),
        result=cast("JsonObject | None", row["result"]),
        created_at=cast("datetime", row["created_at"]),
        finished_at=cast("datetime | None", row["finished_at"]),
    )
