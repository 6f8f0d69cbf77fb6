"""The lines of a session: a header, one record per turn, and a mark where the history was cleared."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from annabelle.core.contract import Usage
from annabelle.core.errors import ErrorBody
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject

VERSION = 1
_log = logging.getLogger(__name__)


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class Header(_Record):
    type: Literal["header"] = "header"
    version: int = VERSION
    agent_id: str
    thread_id: str
    created_at: datetime = Field(default_factory=now)


class TurnRecord(_Record):
    """One turn, whole: what was asked, what was answered, and the model messages in between."""

    type: Literal["turn"] = "turn"
    message_id: str
    trace_id: str
    user_id: str
    at: datetime = Field(default_factory=now)
    user: str
    assistant: str = ""
    messages: list[JsonObject] = Field(
        default_factory=list[JsonObject],
        description="From the user's message on; a call is always followed by its result",
    )
    tools: tuple[str, ...] = ()
    usage: Usage = Usage()
    limit: str | None = None
    error: ErrorBody | None = None


class Cleared(_Record):
    """Nothing before this line is history any more; it is still there to be read by a person."""

    type: Literal["cleared"] = "cleared"
    at: datetime = Field(default_factory=now)


def turns_of(records: Iterable[JsonObject]) -> list[TurnRecord]:
    """The turns since the last clear, each once; a record that is not whole is passed over."""
    turns: dict[str, TurnRecord] = {}
    for record in records:
        if record.get("type") == "cleared":
            turns.clear()
        elif record.get("type") == "turn":
            try:
                turn = TurnRecord.model_validate(record)
            except ValidationError:
                _log.warning("a turn with missing or wrong fields was passed over")
                continue
            turns.setdefault(turn.message_id, turn)
    return list(turns.values())


def message_ids(records: Iterable[JsonObject]) -> set[str]:
    """Every message that has a record, cleared or not."""
    return {str(record.get("message_id")) for record in records if record.get("type") == "turn"}
