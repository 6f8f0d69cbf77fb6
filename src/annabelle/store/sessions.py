"""Sessions: the model's history of each thread, when it lives in a shared PostgreSQL instead of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sqlalchemy import Connection, insert, select

from annabelle.core.tools import JsonObject
from annabelle.store.tables import sessions


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


def load(connection: Connection, agent_id: str, thread_id: str, latest: int | None = None) -> list[JsonObject]:
    """The records of a session in order: all, or only the latest so many."""
    rows = connection.execute(
        select(sessions.c.record)
        .where(sessions.c.agent_id == agent_id, sessions.c.thread_id == thread_id)
        .order_by(sessions.c.position.desc())
        .limit(latest)
    )
    return [cast("JsonObject", row[0]) for row in rows][::-1]
