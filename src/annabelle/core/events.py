"""The one stream of what happens in a turn; terminal, SSE, web page and channels all read it.

A model or tool call may be tried again after a crash. So each event carries its step and attempt, and a reader drops
what it showed of an older attempt of the same step as soon as a newer attempt speaks. Events that state a finished
fact (`final=True`) have the same `key` on every attempt, so a replay after a crash can not double them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.messages import now

EventType = Literal[
    "think", "text", "tool_start", "tool_complete", "usage", "notice", "approval", "message", "error", "done"
]


class TurnEvent(BaseModel):
    """One thing that happened in the turn of one message."""

    model_config = ConfigDict(frozen=True)

    message_id: str
    key: str = Field(description="Unique within the message; a second event with the same key is the same event")
    type: EventType
    step: int = 0
    attempt: int = 0
    data: dict[str, object] = Field(default_factory=dict)
    at: datetime = Field(default_factory=now)


class StoredEvent(TurnEvent):
    """A turn event after the hub has written it down: `seq` is what Last-Event-ID counts."""

    seq: int
    thread_id: str
