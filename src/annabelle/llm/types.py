"""Input and output types of model calls, the same for every provider."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from annabelle.core.contract import ModelCall, TokenUsage
from annabelle.core.messages import OWNER
from annabelle.core.tools import ToolSpec

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolReturnPart

Purpose = Literal["chat", "summary", "thinking", "reader"]
"""Why a model is called; each purpose may have its own model (LLM-05)."""

ToolMode = Literal["native", "schema", "trained", "none"]
"""`native`: the provider's function calling. `schema`: constrained JSON answers. `trained`: the packaged mind, which
calls tools for what a message says and answers with what they return. `none`: conversation only."""

ToolChoice = Literal["auto", "none", "required"] | tuple[str, ...]
"""`required` forces some tool; a tuple of names forces one of these."""

FROM_MEMORY: Final = "from_memory"
"""Marks a text that the packaged mind made up by itself, in its `provider_details`."""

ProviderName = Literal["groq", "anthropic", "openai", "openrouter", "ollama", "lmstudio", "compatible", "embedded"]


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model answers, its tool mode, and the reason in a sentence for the person."""

    provider: ProviderName
    model: str
    tool_mode: ToolMode
    explanation: str


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call. Each attempt of a step has a new `call_id`."""

    call_id: str
    messages: list[ModelMessage]
    purpose: Purpose = "chat"
    tools: list[ToolSpec] = field(default_factory=list[ToolSpec])
    temperature: float | None = None
    tool_choice: ToolChoice = "auto"
    max_tokens: int | None = None
    user_id: str = OWNER
    message_id: str | None = None
    goal_id: str | None = None
    """Of work for a goal that belongs to no message."""
    trace_id: str | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkDelta:
    """More of the model's reasoning, if the provider shows it."""

    text: str


@dataclass(frozen=True, slots=True)
class Completed:
    """Last event of a successful call: the whole response, its usage and its ledger record."""

    response: ModelResponse
    usage: TokenUsage
    call: ModelCall


@dataclass(frozen=True, slots=True)
class FallbackUsed:
    """Another model answers from here on; `reason` says what is wrong with the first (I-29)."""

    failed: ModelChoice | None
    answering: ModelChoice
    reason: str

    @property
    def sentence(self) -> str:
        where = "this machine" if self.answering.provider == "embedded" else self.answering.provider
        return f"{self.reason} So {self.answering.model} ({where}) answers."


ModelEvent = TextDelta | ThinkDelta | FallbackUsed | Completed


def result_words(part: ToolReturnPart) -> str:
    """A result in words for a person, which stand beside those for a model where they differ."""
    return part.metadata if isinstance(part.metadata, str) else str(part.content)
