"""Asks a model that is only trusted with conversation: it never hears of tools (tool mode `none`)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

from annabelle.llm.as_text import without_tool_parts
from annabelle.llm.backend import Ask, Backend, BackendEvent


class PlainTalk:
    """Wraps a backend; tools are dropped and what the history holds of them is told as text."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def stream(self, ask: Ask) -> AsyncGenerator[BackendEvent]:
        return self._backend.stream(
            replace(ask, messages=without_tool_parts(ask.messages), tools=[], tool_choice="auto")
        )

    async def close(self) -> None:
        await self._backend.close()
