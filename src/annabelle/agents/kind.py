"""What makes a kind of agent. Whatever differs between kinds is asked here; nobody asks which kind it is (AGE-01)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sqlalchemy import Connection

from annabelle.core.contract import TurnLimits, TurnResult
from annabelle.core.messages import StoredEvent
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.store.approvals import Approval
from annabelle.store.messages import StoredMessage


@dataclass(frozen=True, slots=True)
class ParkedOutcome:
    """The text for the person, and the open questions. `waits` is False if the turn cannot continue."""

    text: str
    questions: tuple[Approval, ...]
    waits: bool = True


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """A turn that is being delivered. A parked one waits for the person, and its text asks them."""

    message: StoredMessage
    result: TurnResult
    at: datetime
    parked: ParkedOutcome | None = None


class AgentKind(Protocol):
    """Everything here happens in a transaction of the caller's."""

    agent_type: str
    channel: str | None
    """The channel of its threads; None for every channel that is no other kind's."""
    accepts_messages: bool
    """Whether people can write to it."""
    remembered: bool
    """Whether its turns go to the memory. Otherwise what comes of them is told and kept elsewhere."""

    def load_context(self, conn: Connection, message: StoredMessage) -> JsonObject:
        """What the calls of a turn have in place of the message's own: the chat it acts in, and its only tools."""
        ...

    def load_terms(
        self, conn: Connection, message: StoredMessage, limits: TurnLimits, settings: Settings
    ) -> JsonObject:
        """What the brief of a turn has in place of the usual: text, tools, limits. `limits` are the agent's own."""
        ...

    def end_turn(self, conn: Connection, ended: EndedTurn) -> list[StoredEvent]:
        """What else is stored and told when a turn ends."""
        ...

    def drop_turn(self, conn: Connection, message: StoredMessage, why: str, at: datetime) -> list[StoredEvent] | None:
        """What is told when a parked turn is over without an answer; None: the chat is told why."""
        ...
