"""Messages that carry a parked turn on: our own note of what a person answered, never their words."""

from __future__ import annotations

from sqlalchemy import Connection

from annabelle.core.ids import new_id
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store import messages
from annabelle.store.statements import InsertNew
from annabelle.store.stored_message import StoredMessage, stored
from annabelle.store.tables import messages as table

_ROOT, _RESUMES = "root", "resumes"
_insert = InsertNew(table, whole_rows=True)


def add(connection: Connection, parked: StoredMessage, content: str, decided_by: str) -> StoredMessage:
    """Queue the continuation of a message's turn in its thread."""
    values: JsonObject = {
        "id": new_id("msg"),
        "thread_id": parked.thread_id,
        "user_id": parked.user_id,
        "channel": parked.channel,
        "chat_id": parked.chat_id,
        "sender_id": decided_by,
        "external_id": None,
        "role": "user",
        "source": "decision",
        "kind": "inbound",
        "content": content,
        "metadata": {_RESUMES: parked.id, _ROOT: root_of(parked)},
        "state": "queued",
        "trace_id": parked.trace_id,
        "created_at": now(),
    }
    inserted = _insert.one(connection, values)
    assert inserted is not None, "an id that was made just now is nobody else's"
    return stored(inserted)


def root_of(message: StoredMessage) -> str:
    """The message a chain of parked turns began with: the person's own words."""
    return str(message.metadata[_ROOT]) if message.source == "decision" else message.id


def resumed_by(message: StoredMessage) -> str | None:
    """The message whose turn this one carries on, if it does."""
    return str(message.metadata[_RESUMES]) if message.source == "decision" else None


def root_message(connection: Connection, message: StoredMessage) -> StoredMessage:
    """The person's own message behind this one."""
    return message if message.source != "decision" else messages.load(connection, root_of(message))
