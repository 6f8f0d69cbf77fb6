"""Conversations that ended, when sessions live in a shared PostgreSQL instead of files."""

from __future__ import annotations

from datetime import datetime
from typing import cast

from sqlalchemy import Connection, exists, insert, select

from annabelle.core.tools import JsonObject
from annabelle.store.tables import archives


def add(
    connection: Connection,
    archive_id: str,
    agent_id: str,
    record: JsonObject,
    *,
    thread_id: str,
    user_id: str,
    ended_at: datetime,
) -> None:
    """Keep a conversation; the same one again changes nothing. Who calls holds the session's lock."""
    if connection.scalar(select(exists().where(archives.c.id == archive_id))):
        return
    connection.execute(
        insert(archives).values(
            id=archive_id, agent_id=agent_id, thread_id=thread_id, user_id=user_id, record=record, ended_at=ended_at
        )
    )


def load(connection: Connection, agent_id: str, thread_id: str) -> list[JsonObject]:
    """The conversations of a thread, oldest first."""
    rows = connection.execute(
        select(archives.c.record)
        .where(archives.c.agent_id == agent_id, archives.c.thread_id == thread_id)
        .order_by(archives.c.ended_at, archives.c.id)
    )
    return [cast("JsonObject", row[0]) for row in rows]


def ids(connection: Connection, agent_id: str, thread_id: str) -> list[str]:
    """Which there are, oldest first, without reading them."""
    rows = connection.execute(
        select(archives.c.id)
        .where(archives.c.agent_id == agent_id, archives.c.thread_id == thread_id)
        .order_by(archives.c.ended_at, archives.c.id)
    )
    return [str(row[0]) for row in rows]
