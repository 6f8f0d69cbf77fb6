"""Old results of tools as one line each: what they said was used when it was new (CTX-04)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelRequestPart, ToolReturnPart

VERBATIM_RESULTS: Final = 2


def with_stubs(messages: Sequence[ModelMessage], verbatim: int = VERBATIM_RESULTS) -> list[ModelMessage]:
    """The same messages with `[tool: truncated, was N chars]` for all results but the last ones."""
    stubbed: list[ModelMessage] = []
    seen = 0
    for message in reversed(messages):
        if isinstance(message, ModelRequest):
            results = sum(isinstance(part, ToolReturnPart) for part in message.parts)
            if seen + results > verbatim:
                message = _stubbed(message, keep=max(0, verbatim - seen))
            seen += results
        stubbed.append(message)
    stubbed.reverse()
    return stubbed


def _stubbed(message: ModelRequest, keep: int) -> ModelRequest:
    old = sum(isinstance(part, ToolReturnPart) for part in message.parts) - keep
    parts: list[ModelRequestPart] = []
    for part in message.parts:
        if isinstance(part, ToolReturnPart) and old > 0:
            old -= 1
            parts.append(_stub(part))
        else:
            parts.append(part)
    return replace(message, parts=parts)


def _stub(part: ToolReturnPart) -> ToolReturnPart:
    length = len(part.content) if isinstance(part.content, str) else len(part.model_response_str())
    return replace(part, content=f"[{part.tool_name}: truncated, was {length} chars]")
