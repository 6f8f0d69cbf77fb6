"""Session histories and ended conversations in a shared PostgreSQL. Without one, they are files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, TypeVar, cast

from sqlalchemy import Column, Connection, Select, Text, delete, exists, func, insert, literal_column, select, update

from annabelle.core.tools import JsonObject
from annabelle.store.tables import archives, sessions

T = TypeVar("T")

_OLDER: Final = ":older"

PositionedRecord = tuple[int, JsonObject]


def summarised_thread_id(thread_id: str) -> str:
    """Name under which the summarised turns of a thread are stored; no thread can have it."""
    return f"{thread_id}{_OLDER}"


def append_session(
    connection: Connection, agent_id: str, thread_id: str, records: Sequence[JsonObject], *, user_id: str
) -> None:
    """Appends records, all or none."""
    if records:
        connection.execute(
            insert(sessions),
            [
                {"agent_id": agent_id, "thread_id": thread_id, "user_id": user_id, "record": record}
                for record in records
            ],
        )


def load_session(connection: Connection, agent_id: str, thread_id: str) -> list[PositionedRecord]:
    rows = connection.execute(
        select(sessions.c.position, sessions.c.record)
        .where(sessions.c.agent_id == agent_id, sessions.c.thread_id == thread_id)
        .order_by(sessions.c.position)
    )
    return [(cast("int", row[0]), cast("JsonObject", row[1])) for row in rows]


def move_records(connection: Connection, positions: Sequence[int], thread_id: str) -> None:
    connection.execute(update(sessions).where(sessions.c.position.in_(positions)).values(thread_id=thread_id))


def remove_records(connection: Connection, positions: Sequence[int]) -> None:
    connection.execute(delete(sessions).where(sessions.c.position.in_(positions)))


def lock_session(connection: Connection, agent_id: str, thread_id: str) -> None:
    """Locks the session against other holders of this lock until the transaction ends."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(f"{agent_id}/{thread_id}"))))


def list_session_threads(connection: Connection, agent_id: str) -> dict[str, str]:
    """Maps every thread to a mark that changes whenever its session does."""
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
    """Stores an ended conversation. Idempotent; the caller must hold the session's lock."""
    if connection.scalar(select(exists().where(archives.c.id == archive_id))):
        return
    connection.execute(
        insert(archives).values(
            id=archive_id, agent_id=agent_id, thread_id=thread_id, user_id=user_id, record=record, ended_at=ended_at
        )
    )


def load_archive_rows(connection: Connection, agent_id: str, thread_id: str) -> list[tuple[str, JsonObject]]:
    """Returns the ended conversations of a thread with their ids, oldest first."""
    ids = list_archive_ids(connection, agent_id, thread_id)
    return list(zip(ids, load_archives(connection, agent_id, thread_id), strict=True))


def replace_archive(connection: Connection, archive_id: str, record: JsonObject | None) -> None:
    """Changes an ended conversation; without a record it is removed."""
    if record is None:
        connection.execute(delete(archives).where(archives.c.id == archive_id))
    else:
        connection.execute(update(archives).where(archives.c.id == archive_id).values(record=record))


def load_archives(connection: Connection, agent_id: str, thread_id: str) -> list[JsonObject]:
    """Returns the ended conversations of a thread, oldest first."""
    return list(connection.execute(_select_archives(archives.c.record, agent_id, thread_id)).scalars())


def list_archive_ids(connection: Connection, agent_id: str, thread_id: str) -> list[str]:
    """Lists the ids of a thread's ended conversations, oldest first."""
    return list(connection.execute(_select_archives(archives.c.id, agent_id, thread_id)).scalars())


def list_archive_versions(connection: Connection, agent_id: str, thread_id: str) -> list[tuple[str, str]]:
    """As `list_archive_ids`, each with a mark that changes with its record. Of PostgreSQL: who wrote the row last."""
    version = literal_column("xmin").cast(Text)
    rows = connection.execute(_select_archives(archives.c.id, agent_id, thread_id).add_columns(version))
    return [(str(archive_id), str(mark)) for archive_id, mark in rows]


def _select_archives(column: Column[T], agent_id: str, thread_id: str) -> Select[T]:
    of_thread = select(column).where(archives.c.agent_id == agent_id, archives.c.thread_id == thread_id)
    return of_thread.order_by(archives.c.ended_at, archives.c.id)
