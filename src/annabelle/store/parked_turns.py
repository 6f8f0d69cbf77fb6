"""Turns that wait for a person: kept whole until they go on or are given up (POL-03)."""

from __future__ import annotations

from typing import cast

from sqlalchemy import Connection, delete, select

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.statements import InsertNew
from annabelle.store.stored_message import StoredMessage
from annabelle.store.tables import parked_turns

_insert = InsertNew(parked_turns, ["message_id"])


def keep(connection: Connection, message: StoredMessage, root_id: str, turn: JsonObject) -> None:
    """Keep the turn of a message as it stood when it began to wait."""
    values: JsonObject = {
        "message_id": message.id,
        "user_id": message.user_id,
        "root_id": root_id,
        "turn": turn,
        "created_at": now(),
    }
    _insert.one(connection, values)


def get(connection: Connection, message_id: str) -> JsonObject | None:
    """The turn of a message, if it waits."""
    query = select(parked_turns.c.turn).where(parked_turns.c.message_id == message_id)
    return cast("JsonObject | None", connection.execute(query).scalar())


def remove(connection: Connection, message_id: str) -> None:
    """It went on, or never will."""
    connection.execute(delete(parked_turns).where(parked_turns.c.message_id == message_id))
