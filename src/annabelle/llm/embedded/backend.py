"""Asks the embedded engine; it is loaded by the first question."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart, UserPromptPart

from annabelle.core.errors import ProviderRefused
from annabelle.llm.backend import Ask, BackendEvent
from annabelle.llm.embedded.engine import Engine
from annabelle.llm.embedded.weights import Weights
from annabelle.llm.estimate import estimated_tokens
from annabelle.llm.openai_protocol.backend import OpenAiBackend

MAX_TOKENS = 512
# Tokens are estimated, and a prompt that is too long is refused whole: then a smaller part of it is tried.
_SHARES = (0.8, 0.5, 0.25)


class EmbeddedBackend:
    """One engine with one model. Long conversations are cut at the front until they fit its small context."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._engine = Engine(weights.file, context=weights.context, max_tokens=MAX_TOKENS)
        self._backend: OpenAiBackend | None = None
        self._lock = asyncio.Lock()

    async def stream(self, ask: Ask) -> AsyncGenerator[BackendEvent]:
        async with self._lock:
            if self._backend is None:
                # Its server closes a connection after each stream, so keeping one would only meet a closed door.
                place = await self._engine.start()
                self._backend = OpenAiBackend(place, keep_alive=False, extra=self._weights.sampling)
        tokens = min(ask.max_tokens or MAX_TOKENS, MAX_TOKENS)
        for share in _SHARES:
            room = int((self._weights.context - tokens) * share)
            fitted = replace(
                ask, messages=fitting(ask.messages, room), max_tokens=tokens, temperature=self._temperature(ask)
            )
            try:
                async with aclosing(self._backend.stream(fitted)) as events:
                    async for event in events:
                        yield event
                return
            except ProviderRefused as error:
                if "context size" not in error.message or share == _SHARES[-1]:
                    raise

    def _temperature(self, ask: Ask) -> float | None:
        own = self._weights.sampling.get("temperature")
        return own if isinstance(own, float) and ask.answer_schema is None else ask.temperature

    async def close(self) -> None:
        if self._backend is not None:
            await self._backend.close()
        await self._engine.stop()


def fitting(messages: list[ModelMessage], room: int) -> list[ModelMessage]:
    """The conversation within `room` tokens: its oldest messages go first, then long texts lose their ends."""
    if estimated_tokens(messages) <= room or not messages:
        return messages
    first, rest = messages[0], messages[1:]
    while rest[1:] and estimated_tokens([first, *rest]) > room:
        rest = rest[1:]
    kept = [first, *rest]
    if estimated_tokens(kept) <= room:
        return kept
    share = max(200, room * 4 // (len(kept) + 1))
    return [_cut(message, share) for message in kept]


def _cut(message: ModelMessage, characters: int) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    parts = [
        replace(part, content=part.content[:characters])
        if isinstance(part, SystemPromptPart | UserPromptPart) and isinstance(part.content, str)
        else part
        for part in message.parts
    ]
    return ModelRequest(parts=parts, instructions=message.instructions)
