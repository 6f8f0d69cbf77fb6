"""What makes a kind of agent. Whatever differs between kinds is asked here; nobody asks which kind it is (AGE-01)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol

from sqlalchemy import Connection

from annabelle.core.contract import TurnLimits, TurnResult
from annabelle.core.messages import InboundMessage, StoredEvent
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext, JsonObject
from annabelle.store.approvals import Approval
from annabelle.store.goals import StoredGoal
from annabelle.store.messages import StoredMessage

MAX_STEPS: Final = 20
"""Steps of a turn of a goal, a task or a person's own agent (LOOP-02)."""


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
    """What a kind does not define itself is as in a chat. Everything here happens in a transaction of the caller's."""

    agent_type: str
    channel: str | None
    """The channel of its threads; None for every channel that is no other kind's."""
    conversational: bool = True
    """Whether it talks with a person, and so is done once it has sent its answer."""
    accepts_messages: bool = True
    """Whether people can write to it."""

    def admit(self, conn: Connection, message: InboundMessage) -> None:
        """Raises NotFound or Conflict if a person cannot write there."""

    def find_goal(self, conn: Connection, chat_id: str) -> StoredGoal | None:
        """The goal that the agent of a chat works for."""

    def load_context(self, conn: Connection, message: StoredMessage) -> JsonObject:
        """What the calls of a turn have in place of the message's own: the chat it acts in, and its only tools."""
        return {}

    def load_terms(
        self, conn: Connection, message: StoredMessage, limits: TurnLimits, settings: Settings
    ) -> JsonObject:
        """What the brief of a turn has in place of the usual: text, prompt, tools, limits (those are the agent's)."""
        return {}

    def list_child_tools(self, conn: Connection, context: CallContext) -> tuple[str, ...] | None:
        """The tools that a task of this agent may have; None if it has no tasks."""

    def end_turn(self, conn: Connection, ended: EndedTurn) -> list[StoredEvent]:
        """What else is stored and told when a turn ends."""
        return []

    def resume_turn(self, conn: Connection, message: StoredMessage) -> None:
        """What else is stored when a parked turn goes on, because the person has answered."""

    def drop_turn(self, conn: Connection, message: StoredMessage, why: str, at: datetime) -> list[StoredEvent] | None:
        """What is told when a parked turn is over without an answer; None: the chat is told why."""


def read_prompt(name: str) -> str:
    """The prompt of a kind, which stands beside it."""
    found = find_spec(f"annabelle.agents.{name}")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).with_suffix(".md").read_text(encoding="utf-8").strip()
