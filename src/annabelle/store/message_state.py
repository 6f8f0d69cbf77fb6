"""State stored with a message: the turn it continues, the risk found in it (GRD-11), and its delivery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, Text, select, type_coerce, update

from annabelle.core.errors import SecurityBlocked
from annabelle.core.ids import new_id
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store import messages
from annabelle.store.messages import StoredMessage, message_from_row
from annabelle.store.portable_sql import InsertNew, read_all, read_first, require_found
from annabelle.store.tables import deliveries, messages as table

_ROOT, _RESUMES = "root", "resumes"
_insert_continuation = InsertNew(table, whole_rows=True)


def add_continuation(connection: Connection, parked: StoredMessage, content: str, decided_by: str) -> StoredMessage:
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
        "metadata": {_RESUMES: parked.id, _ROOT: root_message_id(parked)},
        "state": "queued",
        "trace_id": parked.trace_id,
        "background": parked.background,
        "created_at": now(),
    }
    inserted = _insert_continuation.insert(connection, values)
    assert inserted is not None, "an id that was made just now is nobody else's"
    return message_from_row(inserted)


def root_message_id(message: StoredMessage) -> str:
    """Id of the person's message that began the chain of parked turns."""
    return str(message.metadata[_ROOT]) if message.source == "decision" else message.id


def resumed_message_id(message: StoredMessage) -> str | None:
    """Id of the message whose turn this one continues, if any."""
    return str(message.metadata[_RESUMES]) if message.source == "decision" else None


def load_root_message(connection: Connection, message: StoredMessage) -> StoredMessage:
    return message if message.source != "decision" else messages.load_message(connection, root_message_id(message))


def add_facts(connection: Connection, message_id: str, facts: JsonObject) -> None:
    """Adds facts about a message to its metadata."""
    locked = select(table.c.metadata).where(table.c.id == message_id).with_for_update()
    kept = require_found(connection.execute(locked).scalar(), f"message {message_id}")
    connection.execute(update(table).where(table.c.id == message_id).values(metadata=kept | facts))


def was_blocked_since(connection: Connection, message: StoredMessage, since: datetime) -> bool:
    """Whether this sender said just the same in this chat since then, and it was blocked."""
    query = select(table.c.metadata).where(
        table.c.thread_id == message.thread_id,
        table.c.sender_id == message.sender_id,
        table.c.source == message.source,
        table.c.content == message.content,
        table.c.created_at >= since,
        table.c.id != message.id,
    )
    return any(facts.get("risk") == "high" for facts in connection.execute(query).scalars())


def was_told_since(connection: Connection, message: StoredMessage, since: datetime) -> bool:
    """Whether this sender was told in this chat since then that a message was blocked."""
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


_insert_delivery = InsertNew(deliveries, ["message_id"])

DeliveryState = Literal["pending", "sending", "sent", "unknown", "failed"]


@dataclass(frozen=True, slots=True)
class Delivery:
    message_id: str
    user_id: str
    channel: str
    state: DeliveryState
    attempts: int
    created_at: datetime
    updated_at: datetime
    sent_ids: list[str | None] | None

    @property
    def is_open(self) -> bool:
        return self.state in ("pending", "sending")

    @property
    def parts_sent(self) -> list[str | None]:
        return list(self.sent_ids or ())


def create_delivery(connection: Connection, message: StoredMessage, state: DeliveryState = "pending") -> None:
    """Records that a message has to be sent, or was. Idempotent."""
    at = now()
    values: dict[str, object] = {
        "message_id": message.id,
        "user_id": message.user_id,
        "channel": message.channel,
        "state": state,
        "attempts": 0,
        "sent_ids": None,
        "created_at": at,
        "updated_at": at,
    }
    _insert_delivery.insert(connection, values)


def begin_delivery(connection: Connection, message_id: str) -> Delivery:
    """Marks a delivery as being sent. Returns its previous state: `sending` means an attempt never ended."""
    before = get_delivery(connection, message_id)
    if before.state in ("pending", "sending"):
        connection.execute(
            update(deliveries)
            .where(deliveries.c.message_id == message_id)
            .values(state="sending", attempts=deliveries.c.attempts + 1, updated_at=now())
        )
    return before


def finish_delivery(
    connection: Connection, message_id: str, state: DeliveryState, sent_ids: Sequence[str | None] | None = None
) -> None:
    """Records how the attempt ended; pending if it was certainly not sent. `sent` is final."""
    parts = {} if sent_ids is None else {"sent_ids": list(sent_ids)}
    connection.execute(
        update(deliveries)
        .where(deliveries.c.message_id == message_id, deliveries.c.state != "sent")
        .values(state=state, updated_at=now(), **parts)
    )


def get_delivery(connection: Connection, message_id: str) -> Delivery:
    return require_found(find_delivery(connection, message_id), f"delivery of {message_id}")


def find_delivery(connection: Connection, message_id: str) -> Delivery | None:
    return read_first(connection, Delivery, select(deliveries).where(deliveries.c.message_id == message_id))


def list_unfinished_deliveries(connection: Connection, limit: int = 1000) -> list[Delivery]:
    """Lists messages still to be sent, oldest first."""
    unsent = select(deliveries).where(deliveries.c.state.in_(("pending", "sending")), deliveries.c.state != "sent")
    oldest = unsent.order_by(deliveries.c.created_at, deliveries.c.message_id).limit(limit)
    return read_all(connection, Delivery, oldest)


def list_questions(
    connection: Connection, channels: Sequence[str], since: datetime
) -> list[tuple[StoredMessage, Delivery]]:
    """Lists the messages with questions for these channels since then, and how far each was delivered."""
    query = (
        select(deliveries)
        .join(table, table.c.id == deliveries.c.message_id)
        .where(
            deliveries.c.channel.in_(channels),
            deliveries.c.updated_at >= since,
            type_coerce(table.c.metadata, Text).contains('"approvals"'),
        )
    )
    found = read_all(connection, Delivery, query)
    return [(messages.load_message(connection, one.message_id), one) for one in found]
