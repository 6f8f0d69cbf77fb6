"""What the guardian said of people's messages: the risk that is kept with one, and who was told of a block (GRD-11)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, select, update

from annabelle.core.errors import SecurityBlocked
from annabelle.core.tools import JsonObject
from annabelle.store import messages
from annabelle.store.stored_message import StoredMessage
from annabelle.store.tables import messages as table


def keep_risk(connection: Connection, message_id: str, facts: JsonObject) -> None:
    """Note with a message what is known of its content, for whoever judges the calls of its turn."""
    kept = messages.load(connection, message_id).metadata
    connection.execute(update(table).where(table.c.id == message_id).values(metadata=kept | facts))


def told_since(connection: Connection, message: StoredMessage, since: datetime) -> bool:
    """Whether this sender was told in this chat that a message was blocked, at that time or later."""
    asked = table.alias("asked")
    query = (
        select(table.c.metadata)
        .join(asked, asked.c.id == table.c.reply_to)
        .where(
            table.c.thread_id == message.thread_id,
            table.c.kind == "answer",
            table.c.source == "error",
            table.c.created_at >= since,
            asked.c.sender_id == message.sender_id,
            asked.c.id != message.id,
        )
    )
    told = connection.execute(query).scalars()
    return any(facts.get("error", {}).get("code") == SecurityBlocked.code for facts in told)
