"""Pending work for the memory: delivered turns to store (MEM-12), and idle threads to extract facts from (MEM-07)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, or_, select, update

from annabelle.core.messages import now
from annabelle.store.messages import StoredMessage
from annabelle.store.portable_sql import InsertNew, InsertOrUpdate, read_all, read_first
from annabelle.store.tables import idle_threads, messages, to_remember

_insert_unstored = InsertNew(to_remember, ["message_id"])
_delete_unstored = delete(to_remember).where(to_remember.c.message_id == bindparam("message"))
# In the order of messages, independent of clocks.
_select_unstored = (
    select(to_remember)
    .outerjoin(messages, messages.c.id == to_remember.c.message_id)
    .order_by(messages.c.position, to_remember.c.message_id)
    .limit(bindparam("limit"))
)
_select_of_thread = select(to_remember.c.message_id).where(to_remember.c.thread_id == bindparam("thread_id")).limit(1)
_update_attempts = (
    update(to_remember)
    .where(to_remember.c.message_id == bindparam("message"))
    .values(attempts=to_remember.c.attempts + 1)
)


@dataclass(frozen=True, slots=True)
class UnstoredTurn:
    message_id: str
    thread_id: str
    user_id: str
    agent_id: str
    created_at: datetime
    attempts: int


def add_unstored_turn(connection: Connection, message: StoredMessage, agent_id: str) -> None:
    """Records a delivered turn. Idempotent."""
    values: dict[str, object] = {
        "message_id": message.id,
        "thread_id": message.thread_id,
        "user_id": message.user_id,
        "agent_id": agent_id,
        "created_at": now(),
        "attempts": 0,
    }
    _insert_unstored.insert(connection, values)


def list_unstored_turns(connection: Connection, limit: int) -> list[UnstoredTurn]:
    """Lists turns to store, in the order they were said."""
    return read_all(connection, UnstoredTurn, _select_unstored, {"limit": limit})


def has_unstored_turn(connection: Connection, thread_id: str) -> bool:
    return connection.execute(_select_of_thread, {"thread_id": thread_id}).first() is not None


def remove_unstored_turn(connection: Connection, message_id: str) -> None:
    connection.execute(_delete_unstored, {"message": message_id})


def count_failed_try(connection: Connection, message_id: str) -> None:
    connection.execute(_update_attempts, {"message": message_id})


_upsert_idle = InsertOrUpdate(idle_threads, ["thread_id"], ["user_id", "agent_id", "last_message_id", "due_at"])
_select_idle = select(idle_threads).where(idle_threads.c.thread_id == bindparam("thread_id"))
_delete_idle = delete(idle_threads).where(
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


def put_idle_thread(connection: Connection, message: StoredMessage, agent_id: str, due_at: datetime) -> None:
    """Postpones the thread's due time after a new message."""
    values: dict[str, object] = {
        "thread_id": message.thread_id,
        "user_id": message.user_id,
        "agent_id": agent_id,
        "last_message_id": message.id,
        "due_at": due_at,
    }
    _upsert_idle(connection, values)


def get_idle_thread(connection: Connection, thread_id: str) -> IdleThread | None:
    return read_first(connection, IdleThread, _select_idle, {"thread_id": thread_id})


def list_idle_threads(connection: Connection) -> list[IdleThread]:
    """Lists idle threads by due time."""
    by_time = select(idle_threads).order_by(idle_threads.c.due_at, idle_threads.c.thread_id)
    return read_all(connection, IdleThread, by_time)


def is_thread_busy(connection: Connection, thread_id: str) -> bool:
    """Whether a message of the thread is unanswered, or a turn not stored yet."""
    return bool(connection.execute(_busy, {"thread_id": thread_id}).scalar())


def remove_idle_thread(connection: Connection, idle: IdleThread) -> None:
    """Removes an idle thread, unless a message arrived since."""
    connection.execute(_delete_idle, {"thread": idle.thread_id, "message": idle.last_message_id})
