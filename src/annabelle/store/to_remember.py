"""Delivered turns the memory has not stored yet: written with the delivery, gone when they are stored (MEM-12)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, select, update

from annabelle.core.messages import now
from annabelle.store.statements import InsertNew
from annabelle.store.stored_message import StoredMessage
from annabelle.store.tables import messages, to_remember

_insert = InsertNew(to_remember, ["message_id"])
_done = delete(to_remember).where(to_remember.c.message_id == bindparam("message"))
# In the order things were said, which no clock decides.
_waiting = (
    select(to_remember)
    .outerjoin(messages, messages.c.id == to_remember.c.message_id)
    .order_by(messages.c.position, to_remember.c.message_id)
    .limit(bindparam("limit"))
)
_of_thread = select(to_remember.c.message_id).where(to_remember.c.thread_id == bindparam("thread_id")).limit(1)
_failed = (
    update(to_remember)
    .where(to_remember.c.message_id == bindparam("message"))
    .values(attempts=to_remember.c.attempts + 1)
)


@dataclass(frozen=True, slots=True)
class ToRemember:
    message_id: str
    thread_id: str
    user_id: str
    agent_id: str
    created_at: datetime
    attempts: int


def add(connection: Connection, message: StoredMessage, agent_id: str) -> None:
    """Note a delivered turn; a second note changes nothing."""
    values: dict[str, object] = {
        "message_id": message.id,
        "thread_id": message.thread_id,
        "user_id": message.user_id,
        "agent_id": agent_id,
        "created_at": now(),
        "attempts": 0,
    }
    _insert.one(connection, values)


def waiting(connection: Connection, limit: int) -> list[ToRemember]:
    """What has to be stored, in the order it was said."""
    return [ToRemember(*row) for row in connection.execute(_waiting, {"limit": limit})]


def waits(connection: Connection, thread_id: str) -> bool:
    """Whether a turn of this thread has still to be stored."""
    return connection.execute(_of_thread, {"thread_id": thread_id}).first() is not None


def done(connection: Connection, message_id: str) -> None:
    """It is stored, or there is nothing to store."""
    connection.execute(_done, {"message": message_id})


def failed(connection: Connection, message_id: str) -> None:
    """Count a try that the memory refused."""
    connection.execute(_failed, {"message": message_id})
