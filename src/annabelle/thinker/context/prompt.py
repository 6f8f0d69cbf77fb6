"""Builds the messages of a turn's first model call, in layers (ARCHITECTURE, Prompt)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Protocol

from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart, UserPromptPart

from annabelle.thinker.context.clock import spoken
from annabelle.thinker.context.history import History
from annabelle.thinker.context.persona import Persona
from annabelle.thinker.session.records import TurnRecord


@dataclass(frozen=True, slots=True)
class Situation:
    """What one turn is about: the clean text, when it was sent, and what was said before."""

    text: str
    at: datetime
    turns: Sequence[TurnRecord]
    history_messages: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """`before` goes to the model ahead of the turn; `user` is the turn's own first message, as the session keeps it."""

    before: list[ModelMessage]
    user: ModelRequest
    fresh: str

    def messages(self, since: Sequence[ModelMessage]) -> list[ModelMessage]:
        """Everything for the next call: the prefix, the user's message with the fresh facts, and the turn so far."""
        opening = (
            ModelRequest(parts=[UserPromptPart(content=self.fresh), *self.user.parts]) if self.fresh else self.user
        )
        return [*self.before, opening, *since]


class ContextBuilder(Protocol):
    """Anything that can set the scene for a turn."""

    def build(self, situation: Situation) -> Prompt: ...


class PlainContext:
    """Persona, the last messages, and the time."""

    def __init__(self, persona: Persona, where: tzinfo) -> None:
        self._persona, self._where = persona, where
        self._history = History()

    def build(self, situation: Situation) -> Prompt:
        static = ModelRequest(parts=[SystemPromptPart(content=self._persona.text())])
        return Prompt(
            before=[static, *self._history.latest(situation.turns, situation.history_messages)],
            user=ModelRequest(parts=[UserPromptPart(content=situation.text)]),
            fresh=f"[It is {spoken(situation.at, self._where)}.]",
        )
