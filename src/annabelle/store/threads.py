"""Threads: one conversation of one person with one agent in one chat."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, bindparam, select, update

from annabelle.core.errors import NotFound
from annabelle.core.ids import new_id
from annabelle.core.messages import now
from annabelle.store.statements import InsertNew
from annabelle.store.tables import threads

_insert = InsertNew(threads, ["channel", "chat_id", "user_id", "agent_id"])
_find = select(threads).where(
    threads.c.channel == bindparam("channel"),
    threads.c.chat_id == bindparam("chat_id"),
    threads.c.user_id == bindparam("user_id"),
    threads.c.agent_id == bindparam("agent_id"),
)
_touch = update(threads).where(threads.c.id == bindparam("thread")).values(updated_at=bindparam("at"))


@dataclass(frozen=True, slots=True)
class Thread:
    id: str
    channel: str
    chat_id: str
    user_id: str
    agent_id: str
    created_at: datetime
    updated_at: datetime


def find_or_create(connection: Connection, *, channel: str, chat_id: str, user_id: str, agent_id: str) -> Thread:
    """The thread of this chat, person and agent; made at their first message."""
    key: dict[str, object] = {"channel": channel, "chat_id": chat_id, "user_id": user_id, "agent_id": agent_id}
    row = connection.execute(_find, key).mappings().first()
    if row is None:
        at = now()
        _insert.one(connection, {"id": new_id("thr"), "created_at": at, "updated_at": at, **key})
        row = connection.execute(_find, key).mappings().one()
    return _thread(row)


def get(connection: Connection, thread_id: str, user_id: str) -> Thread:
    """A person's own thread; another person's is not found either."""
    row = (
        connection.execute(select(threads).where(threads.c.id == thread_id, threads.c.user_id == user_id))
        .mappings()
        .first()
    )
    if row is None:
        raise NotFound(f"There is no thread {thread_id}.")
    return _thread(row)


def load(connection: Connection, thread_id: str) -> Thread:
    """A thread by its id alone, for the flow that works on it; never to answer a person's request."""
    row = connection.execute(select(threads).where(threads.c.id == thread_id)).mappings().first()
    if row is None:
        raise NotFound(f"There is no thread {thread_id}.")
    return _thread(row)


def listing(connection: Connection, user_id: str, limit: int = 50) -> list[Thread]:
    """A person's threads, the one used last first."""
    rows = connection.execute(
        select(threads)
        .where(threads.c.user_id == user_id)
        .order_by(threads.c.updated_at.desc(), threads.c.id.desc())
        .limit(limit)
    ).mappings()
    return [_thread(row) for row in rows]


def touch(connection: Connection, thread_id: str, at: datetime) -> None:
    """Note that something was said; on PostgreSQL this also makes the writers of one thread wait for each other."""
    connection.execute(_touch, {"thread": thread_id, "at": at})


def _thread(row: RowMapping) -> Thread:
    return Thread(**{str(key): value for key, value in row.items()})
