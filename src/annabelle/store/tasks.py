"""Tasks that agents delegated, from request to result (RTR-05, I-26).

A task of a goal is a turn of its own: `active`, `paused` until it is tried again or the person has answered,
`completed` or `cancelled` (AGE-03, AGE-13).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from sqlalchemy import Connection, and_, bindparam, delete, func, select, update

from annabelle.core.errors import TooManyRequests
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.portable_sql import InsertNew, field_values, from_row, read_all, read_first, require_found
from annabelle.store.tables import tasks

TaskKind = Literal["tool_call", "subagent", "goal"]
TaskState = Literal["queued", "running", "done", "failed", "unknown", "active", "paused", "completed", "cancelled"]
_OPEN = ("queued", "running")
_AT_WORK = ("active", "paused")

_insert = InsertNew(tasks, ["id"], whole_rows=True)
_by_id = select(tasks).where(tasks.c.id == bindparam("id"))
_own = _by_id.where(tasks.c.user_id == bindparam("user_id"))
_in_order = select(tasks).order_by(tasks.c.created_at, tasks.c.id)
_of_message = _in_order.where(tasks.c.message_id == bindparam("message_id"))
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
    goal_id: str | None = None
    state: TaskState = "queued"


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
    goal_id: str | None = None
    next_try_at: datetime | None = None
    failures: int = 0

    @property
    def open(self) -> bool:
        return self.state in _OPEN or self.state in _AT_WORK

    @property
    def begun_at(self) -> datetime:
        """When it was made, or begun again by its person."""
        again = self.request.get("begun_at")
        return self.created_at if again is None else datetime.fromisoformat(str(again))

    @property
    def waits_for_agent(self) -> bool:
        """Whether it is not tried because its agent is paused, or may not spend more now."""
        return bool(self.request.get("waits_for_agent"))

    @property
    def attempt(self) -> int:
        """Number of its latest attempt, from 0. One that the pause of its agent ended is no failure."""
        return self.failures + cast("int", self.request.get("spared", 0))

    @property
    def waits_for_person(self) -> bool:
        """Whether it goes on once the person has answered, not by itself."""
        return self.state == "paused" and self.next_try_at is None


def create_task(
    connection: Connection, new: NewTask, at_once: int | None = None, at: datetime | None = None
) -> StoredTask:
    """Stores a task. The same id is the same task; `at_once` limits open tasks of this agent and kind."""
    known = read_first(connection, StoredTask, _by_id, {"id": new.id})
    if known is not None:
        return known
    if at_once is not None and _count_open(connection, new) >= at_once:
        raise TooManyRequests(
            f"{new.agent_id} has {at_once} at work already, which is the most.", hint="Wait until one has ended."
        )
    inserted = _insert.insert(connection, {**field_values(new), "created_at": at or now()})
    return load_task(connection, new.id) if inserted is None else from_row(StoredTask, inserted)


def begin_task(connection: Connection, task_id: str) -> bool:
    """Marks a queued task as running; returns whether it was queued."""
    return connection.execute(_begin, {"task": task_id, "new_state": "running"}).rowcount == 1


def finish_task(connection: Connection, task_id: str, state: TaskState, result: JsonObject) -> bool:
    """Stores how a task ended; returns False if it had ended before."""
    change: JsonObject = {"task": task_id, "new_state": state, "new_result": result, "at": now()}
    return connection.execute(_finish, change).rowcount == 1


def get_task(connection: Connection, task_id: str, user_id: str) -> StoredTask:
    """Returns a task of this person; NotFound for anyone else's."""
    found = read_first(connection, StoredTask, _own, {"id": task_id, "user_id": user_id})
    return require_found(found, f"task {task_id}")


def load_task(connection: Connection, task_id: str) -> StoredTask:
    """Loads a task of any person, for internal use."""
    return require_found(read_first(connection, StoredTask, _by_id, {"id": task_id}), f"task {task_id}")


def list_unfinished_tasks(connection: Connection) -> list[StoredTask]:
    return read_all(connection, StoredTask, _in_order.where(tasks.c.state.in_(_OPEN)))


def list_message_tasks(connection: Connection, message_id: str) -> list[StoredTask]:
    return read_all(connection, StoredTask, _of_message, {"message_id": message_id})


def change_task(connection: Connection, task_id: str, changes: JsonObject) -> bool:
    """Changes a task of a goal that has not ended; returns whether there was such a one."""
    wanted = update(tasks).where(tasks.c.id == task_id, tasks.c.state.in_(_AT_WORK))
    return connection.execute(wanted.values(**changes)).rowcount == 1


def reopen_task(connection: Connection, task_id: str, changes: JsonObject) -> None:
    """Changes a task of a goal, also one that has ended."""
    connection.execute(update(tasks).where(tasks.c.id == task_id, tasks.c.kind == "goal").values(**changes))


def list_at_work(connection: Connection, goal_id: str | None, user_id: str | None = None) -> list[StoredTask]:
    """Lists the tasks of a goal, or without one of a person's own agent, that have not ended, oldest first."""
    of_agent = and_(tasks.c.goal_id.is_(None), tasks.c.user_id == user_id)
    wanted = of_agent if goal_id is None else tasks.c.goal_id == goal_id
    return read_all(connection, StoredTask, _in_order.where(wanted, tasks.c.state.in_(_AT_WORK)))


def list_in_state(connection: Connection, state: TaskState, before: datetime | None = None) -> list[StoredTask]:
    """Lists the tasks of goals in a state, of everybody, oldest first; with `before` those begun before this moment."""
    found = read_all(connection, StoredTask, _in_order.where(tasks.c.state == state))
    return [one for one in found if before is None or one.begun_at < before]


def remove_ended_tasks(connection: Connection, before: datetime) -> int:
    """Removes the tasks of goals that ended before this moment; what they found stays as notes."""
    ended = tasks.c.kind == "goal", tasks.c.state.in_(("completed", "cancelled")), tasks.c.finished_at < before
    return connection.execute(delete(tasks).where(*ended)).rowcount


def list_tasks(connection: Connection, user_id: str, limit: int = 50, goal_id: str | None = None) -> list[StoredTask]:
    """Lists a person's tasks, of all sorts or of one goal, newest first."""
    own = select(tasks).where(tasks.c.user_id == user_id)
    own = own if goal_id is None else own.where(tasks.c.goal_id == goal_id)
    return read_all(connection, StoredTask, own.order_by(tasks.c.created_at.desc(), tasks.c.id).limit(limit))


def count_open(connection: Connection) -> int:
    return int(connection.execute(select(func.count()).where(tasks.c.state.in_(_OPEN))).scalar_one())


def count_failed_since(connection: Connection, moment: datetime) -> int:
    failed = select(func.count()).where(tasks.c.state == "failed", tasks.c.finished_at >= moment)
    return int(connection.execute(failed).scalar_one())


def _count_open(connection: Connection, new: NewTask) -> int:
    query = select(func.count()).where(
        tasks.c.agent_id == new.agent_id, tasks.c.kind == new.kind, tasks.c.state.in_(_OPEN)
    )
    return int(connection.execute(query).scalar_one())
