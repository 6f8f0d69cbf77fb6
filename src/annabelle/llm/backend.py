"""What every way to a model has in common: one question in, deltas and one answer out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Protocol

from pydantic_ai.messages import ModelMessage, ModelResponse

from annabelle.core.errors import ProviderRefused
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.llm.types import TextDelta, ThinkDelta, ToolChoice


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """The shape the answer must have, where the server can constrain it."""

    name: str
    schema: JsonObject


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to one model."""

    model: str
    messages: list[ModelMessage]
    tools: list[ToolSpec] = field(default_factory=list[ToolSpec])
    tool_choice: ToolChoice = "auto"
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float = 90
    answer_schema: AnswerSchema | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The whole response; `cost_usd` only where the provider itself states what it charged."""

    response: ModelResponse
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """The provider has begun to answer: whatever becomes of it, from here on it may charge."""


BackendEvent = TextDelta | ThinkDelta | Begun | Answer


class Backend(Protocol):
    """One way to ask a model. Raises the provider errors of `core.errors` and nothing else on purpose."""

    def stream(self, ask: Ask) -> AsyncGenerator[BackendEvent]: ...

    async def close(self) -> None: ...


class ToolsNotSupported(ProviderRefused):
    """The server says that this model can not be given tools; it is asked again in another way (LLM-08)."""


class KeyRefused(ProviderRefused):
    """The provider takes neither this key nor this account; another provider may answer in its place (LLM-06)."""
