"""A message as it is kept: what the table holds, with types."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import RowMapping

from annabelle.core.messages import MessageSource, MessageState
from annabelle.core.tools import JsonObject

Kind = Literal["inbound", "answer", "said"]


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message as it is kept. `position` is its place in the order; clocks play no part in it."""

    position: int
    id: str
    thread_id: str
    user_id: str
    channel: str
    chat_id: str
    sender_id: str
    external_id: str | None
    role: Literal["user", "assistant"]
    source: MessageSource
    kind: Kind
    content: str
    metadata: JsonObject
    state: MessageState
    reply_to: str | None
    call_id: str | None
    trace_id: str | None
    created_at: datetime


def stored(row: RowMapping) -> StoredMessage:
    """A row of the table as a message."""
    return StoredMessage(**{str(key): value for key, value in row.items()})
