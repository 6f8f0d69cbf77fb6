"""What goes into a model call and what comes out of it, the same for every provider."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from annabelle.core.contract import ModelCall, TokenUsage
from annabelle.core.messages import OWNER
from annabelle.core.tools import ToolSpec

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse

Purpose = Literal["chat", "summary", "thinking"]
"""Why a model is asked; each purpose may have its own model (LLM-05)."""

ToolMode = Literal["native", "schema", "none"]
"""`native`: the provider's function calling. `schema`: a constrained JSON answer. `none`: conversation only."""

ToolChoice = Literal["auto", "none", "required"] | tuple[str, ...]
"""`required` forces some tool; a tuple of names forces one of these."""

ProviderName = Literal["groq", "anthropic", "openai", "openrouter", "ollama", "lmstudio", "compatible", "embedded"]


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model answers, how it is given tools, and why, in a sentence for the person."""

    provider: ProviderName
    model: str
    tool_mode: ToolMode
    explanation: str


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call of a model. A new attempt of the same step has a new `call_id`."""

    call_id: str
    messages: list[ModelMessage]
    purpose: Purpose = "chat"
    tools: list[ToolSpec] = field(default_factory=list[ToolSpec])
    temperature: float | None = None
    tool_choice: ToolChoice = "auto"
    max_tokens: int | None = None
    user_id: str = OWNER
    message_id: str | None = None
    trace_id: str | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkDelta:
    """More of the model's reasoning, where the provider shows it."""

    text: str


@dataclass(frozen=True, slots=True)
class Completed:
    """The last event of every call that worked: the whole response, its tokens and its record in the ledger."""

    response: ModelResponse
    usage: TokenUsage
    call: ModelCall


@dataclass(frozen=True, slots=True)
class FallbackUsed:
    """Another model answers from here on; `reason` is the sentence that says what is wrong with the first (I-29)."""

    failed: ModelChoice | None
    answering: ModelChoice
    reason: str

    @property
    def sentence(self) -> str:
        """What the person is told."""
        where = "this machine" if self.answering.provider == "embedded" else self.answering.provider
        return f"{self.reason} So {self.answering.model} ({where}) answers."


ModelEvent = TextDelta | ThinkDelta | FallbackUsed | Completed
