"""A conversation with a person, in any channel."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from annabelle.agents.kind import AgentKind, EndedTurn
from annabelle.core.contract import TurnLimits
from annabelle.core.messages import StoredEvent
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.store.messages import StoredMessage


class ChatKind:
    agent_type = "chat"
    channel: str | None = None
    accepts_messages = True
    remembered = True

    def load_context(self, conn: Connection, message: StoredMessage) -> JsonObject:
        return {}

    def load_terms(
        self, conn: Connection, message: StoredMessage, limits: TurnLimits, settings: Settings
    ) -> JsonObject:
        return {}

    def end_turn(self, conn: Connection, ended: EndedTurn) -> list[StoredEvent]:
        return []

    def drop_turn(self, conn: Connection, message: StoredMessage, why: str, at: datetime) -> list[StoredEvent] | None:
        return None


KIND: Final[AgentKind] = ChatKind()
