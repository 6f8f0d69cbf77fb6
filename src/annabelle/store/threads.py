"""Threads: one conversation of one person with one agent in one chat."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, select, update

from annabelle.core.errors import NotFound
from annabelle.core.ids import new_id
from annabelle.core.messages import now
from annabelle.store.statements import insert_new
from annabelle.store.tables import threads


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
    wanted = select(threads).where(
        threads.c.channel == channel,
        threads.c.chat_id == chat_id,
        threads.c.user_id == user_id,
        threads.c.agent_id == agent_id,
    )
    row = connection.execute(wanted).mappings().first()
    if row is None:
        at = now()
        values: dict[str, object] = {
            "id": new_id("thr"),
            "channel": channel,
            "chat_id": chat_id,
            "user_id": user_id,
            "agent_id": agent_id,
            "created_at": at,
            "updated_at": at,
        }
        insert_new(
            connection, threads, values, [threads.c.channel, threads.c.chat_id, threads.c.user_id, threads.c.agent_id]
        )
        row = connection.execute(wanted).mappings().one()
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
    connection.execute(update(threads).where(threads.c.id == thread_id).values(updated_at=at))


def _thread(row: RowMapping) -> Thread:
    return Thread(**{str(key): value for key, value in row.items()})
