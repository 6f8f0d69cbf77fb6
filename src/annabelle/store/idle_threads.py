"""Threads in which something was said and facts have not been looked for since (MEM-07)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, or_, select

from annabelle.store.statements import InsertOrUpdate
from annabelle.store.stored_message import StoredMessage
from annabelle.store.tables import idle_threads, messages, to_remember

_put = InsertOrUpdate(idle_threads, ["thread_id"], ["user_id", "agent_id", "last_message_id", "due_at"])
_get = select(idle_threads).where(idle_threads.c.thread_id == bindparam("thread_id"))
_drop = delete(idle_threads).where(
    idle_threads.c.thread_id == bindparam("thread"), idle_threads.c.last_message_id == bindparam("message")
)
_unfinished = (
    select(messages.c.id)
    .where(messages.c.thread_id == bindparam("thread_id"), messages.c.state.in_(("queued", "running")))
    .exists()
)
_unstored = select(to_remember.c.message_id).where(to_remember.c.thread_id == bindparam("thread_id")).exists()
_busy = select(or_(_unfinished, _unstored))


@dataclass(frozen=True, slots=True)
class IdleThread:
    thread_id: str
    user_id: str
    agent_id: str
    last_message_id: str
    due_at: datetime


def put(connection: Connection, message: StoredMessage, agent_id: str, due_at: datetime) -> None:
    """Something was said: the thread is due later than it was."""
    values: dict[str, object] = {
        "thread_id": message.thread_id,
        "user_id": message.user_id,
        "agent_id": agent_id,
        "last_message_id": message.id,
        "due_at": due_at,
    }
    _put(connection, values)


def get(connection: Connection, thread_id: str) -> IdleThread | None:
    row = connection.execute(_get, {"thread_id": thread_id}).first()
    return None if row is None else IdleThread(*row)


def listing(connection: Connection) -> list[IdleThread]:
    """Every thread that rests, the one due first first."""
    rows = connection.execute(select(idle_threads).order_by(idle_threads.c.due_at, idle_threads.c.thread_id))
    return [IdleThread(*row) for row in rows]


def busy(connection: Connection, thread_id: str) -> bool:
    """Whether a message of the thread waits for its answer, or a turn of it for being stored."""
    return bool(connection.execute(_busy, {"thread_id": thread_id}).scalar())


def drop(connection: Connection, idle: IdleThread) -> None:
    """It was taken up, unless something was said since."""
    connection.execute(_drop, {"thread": idle.thread_id, "message": idle.last_message_id})
