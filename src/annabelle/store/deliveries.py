"""Deliveries: how far each message has got on its way out, so that it leaves exactly once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, select, update

from annabelle.core.errors import NotFound
from annabelle.core.messages import now
from annabelle.store.statements import InsertNew
from annabelle.store.stored_message import StoredMessage
from annabelle.store.tables import deliveries

_insert = InsertNew(deliveries, ["message_id"])

DeliveryState = Literal["pending", "sending", "sent", "unknown"]


@dataclass(frozen=True, slots=True)
class Delivery:
    message_id: str
    user_id: str
    channel: str
    state: DeliveryState
    attempts: int
    created_at: datetime
    updated_at: datetime


def create(connection: Connection, message: StoredMessage) -> Delivery:
    """Note that a message has to go out; a second note changes nothing."""
    at = now()
    values: dict[str, object] = {
        "message_id": message.id,
        "user_id": message.user_id,
        "channel": message.channel,
        "state": "pending",
        "attempts": 0,
        "created_at": at,
        "updated_at": at,
    }
    _insert.one(connection, values)
    return get(connection, message.id)


def begin(connection: Connection, message_id: str) -> Delivery:
    """Note that it is being handed over now. Gives back how it stood before: `sending` means an attempt never ended."""
    before = get(connection, message_id)
    if before.state in ("pending", "sending"):
        connection.execute(
            update(deliveries)
            .where(deliveries.c.message_id == message_id)
            .values(state="sending", attempts=deliveries.c.attempts + 1, updated_at=now())
        )
    return before


def finish(connection: Connection, message_id: str, state: Literal["pending", "sent", "unknown"]) -> None:
    """Note how the attempt ended: sent, unknown, or pending again when it surely did not go out. `sent` is for good."""
    connection.execute(
        update(deliveries)
        .where(deliveries.c.message_id == message_id, deliveries.c.state != "sent")
        .values(state=state, updated_at=now())
    )


def get(connection: Connection, message_id: str) -> Delivery:
    row = connection.execute(select(deliveries).where(deliveries.c.message_id == message_id)).first()
    if row is None:
        raise NotFound(f"There is no delivery of {message_id}.")
    return Delivery(*row)


def unfinished(connection: Connection, limit: int = 1000) -> list[Delivery]:
    """What still has to go out, oldest first."""
    rows = connection.execute(
        select(deliveries)
        .where(deliveries.c.state.in_(("pending", "sending")), deliveries.c.state != "sent")
        .order_by(deliveries.c.created_at, deliveries.c.message_id)
        .limit(limit)
    )
    return [Delivery(*row) for row in rows]
