"""The model's history of each thread, and ended conversations, when they live in a shared PostgreSQL instead of files.
Summarised turns are stored under the thread's name with a suffix.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, cast

from sqlalchemy import Connection, delete, exists, func, insert, select, update

from annabelle.core.tools import JsonObject
from annabelle.store.tables import archives, sessions

_OLDER: Final = ":older"

PositionedRecord = tuple[int, JsonObject]
"""A record, and where it stands."""


def summarised_thread_id(thread_id: str) -> str:
    """The name under which the summed-up turns of a thread are kept; no thread can have it."""
    return f"{thread_id}{_OLDER}"


def append_session(
    connection: Connection, agent_id: str, thread_id: str, records: Sequence[JsonObject], *, user_id: str
) -> None:
    """Add records behind those that are there, all or none."""
    if records:
        connection.execute(
            insert(sessions),
            [
                {"agent_id": agent_id, "thread_id": thread_id, "user_id": user_id, "record": record}
                for record in records
            ],
        )


def load_session(connection: Connection, agent_id: str, thread_id: str) -> list[PositionedRecord]:
    """The records of a session in order."""
    rows = connection.execute(
        select(sessions.c.position, sessions.c.record)
        .where(sessions.c.agent_id == agent_id, sessions.c.thread_id == thread_id)
        .order_by(sessions.c.position)
    )
    return [(cast("int", row[0]), cast("JsonObject", row[1])) for row in rows]


def move_records(connection: Connection, positions: Sequence[int], thread_id: str) -> None:
    """Keep these records under another name."""
    connection.execute(update(sessions).where(sessions.c.position.in_(positions)).values(thread_id=thread_id))


def remove_records(connection: Connection, positions: Sequence[int]) -> None:
    connection.execute(delete(sessions).where(sessions.c.position.in_(positions)))


def lock_session(connection: Connection, agent_id: str, thread_id: str) -> None:
    """Until the transaction ends, nobody else who asks for this lock changes the session."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(f"{agent_id}/{thread_id}"))))


def list_session_threads(connection: Connection, agent_id: str) -> dict[str, str]:
    """Every thread with a mark that changes whenever its session does."""
    rows = connection.execute(
        select(sessions.c.thread_id, func.max(sessions.c.position), func.count())
        .where(sessions.c.agent_id == agent_id, sessions.c.thread_id.not_like(f"%{_OLDER}"))
        .group_by(sessions.c.thread_id)
    )
    return {str(thread): f"{last}:{count}" for thread, last, count in rows}


def add_archive(
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


def load_archives(connection: Connection, agent_id: str, thread_id: str) -> list[JsonObject]:
    """The conversations of a thread, oldest first."""
    rows = connection.execute(
        select(archives.c.record)
        .where(archives.c.agent_id == agent_id, archives.c.thread_id == thread_id)
        .order_by(archives.c.ended_at, archives.c.id)
    )
    return [cast("JsonObject", row[0]) for row in rows]


def list_archive_ids(connection: Connection, agent_id: str, thread_id: str) -> list[str]:
    """Which there are, oldest first, without reading them."""
    rows = connection.execute(
        select(archives.c.id)
        .where(archives.c.agent_id == agent_id, archives.c.thread_id == thread_id)
        .order_by(archives.c.ended_at, archives.c.id)
    )
    return [str(row[0]) for row in rows]
