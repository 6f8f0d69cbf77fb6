"""Sessions: the model's history of each thread, when it lives in a shared PostgreSQL instead of a file.

Turns that were summed up are kept under the thread's name with a mark behind it, out of the way of every turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from sqlalchemy import Connection, delete, func, insert, select, update

from annabelle.core.tools import JsonObject
from annabelle.store.tables import sessions

_OLDER: Final = ":older"

Positioned = tuple[int, JsonObject]
"""A record, and where it stands."""


def older(thread_id: str) -> str:
    """The name under which the summed-up turns of a thread are kept; no thread can have it."""
    return f"{thread_id}{_OLDER}"


def append(
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


def load(connection: Connection, agent_id: str, thread_id: str) -> list[Positioned]:
    """The records of a session in order."""
    rows = connection.execute(
        select(sessions.c.position, sessions.c.record)
        .where(sessions.c.agent_id == agent_id, sessions.c.thread_id == thread_id)
        .order_by(sessions.c.position)
    )
    return [(cast("int", row[0]), cast("JsonObject", row[1])) for row in rows]


def move(connection: Connection, positions: Sequence[int], thread_id: str) -> None:
    """Keep these records under another name."""
    connection.execute(update(sessions).where(sessions.c.position.in_(positions)).values(thread_id=thread_id))


def remove(connection: Connection, positions: Sequence[int]) -> None:
    connection.execute(delete(sessions).where(sessions.c.position.in_(positions)))


def lock(connection: Connection, agent_id: str, thread_id: str) -> None:
    """Until the transaction ends, nobody else who asks for this lock changes the session."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(f"{agent_id}/{thread_id}"))))


def threads(connection: Connection, agent_id: str) -> dict[str, str]:
    """Every thread with a mark that changes whenever its session does."""
    rows = connection.execute(
        select(sessions.c.thread_id, func.max(sessions.c.position), func.count())
        .where(sessions.c.agent_id == agent_id, sessions.c.thread_id.not_like(f"%{_OLDER}"))
        .group_by(sessions.c.thread_id)
    )
    return {str(thread): f"{last}:{count}" for thread, last, count in rows}
