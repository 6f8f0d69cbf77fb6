"""What the loop asks of the thinking phase, which compresses the context of a request (CMP-02)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic_ai.messages import ModelMessage, ModelRequest

from annabelle.core.contract import TokenUsage, TurnBrief
from annabelle.core.tools import JsonObject
from annabelle.llm.types import ModelRequest as ModelAsk


@dataclass(frozen=True, slots=True)
class CompressionRequest:
    """The conversation so far, without the static layers: history, the user's message, and what followed it."""

    brief: TurnBrief
    step: int
    messages: Sequence[ModelMessage]
    goal: ModelRequest
    """The user's message of this turn, one of `messages`; never dropped or changed."""
    workspace: str = ""
    open_tasks: tuple[str, ...] = ()
    """Tasks of the workspace that are not done."""
    model: str = ""
    """The chat model, whose family decides how tokens are counted."""


@dataclass(frozen=True, slots=True)
class CompressionResult:
    """The messages for the model, and the notes about them."""

    compressed_history: list[ModelMessage]
    summary: str = ""
    current_state: str = ""
    insights: tuple[str, ...] = ()
    next_actions: str = ""
    thinking_tokens: int = 0
    context: str = ""
    """What changed since the last cycle, as a short section of its own (CMP-10)."""
    metrics: JsonObject = field(default_factory=dict[str, object])


class Compressor(Protocol):
    """Compresses the context of a request. Never raises: the loop always gets messages to send."""

    async def think(self, ask: CompressionRequest) -> CompressionResult: ...

    def learn(self, request: ModelAsk, model: str, usage: TokenUsage) -> None:
        """Correct the token estimate by the provider's usage (CMP-05)."""
        ...

    def finished(self, message_id: str, *, success: bool) -> JsonObject:
        """The metrics of a finished turn; empty if there are none (CMP-06)."""
        ...

    def status(self) -> JsonObject:
        """The totals of this process."""
        ...
