"""A conversation without tool parts, for models that do not know them: calls and results become plain text."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)


def without_tool_parts(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The same conversation; messages that hold no tool part are passed on as they are."""
    return [_request(item) if isinstance(item, ModelRequest) else _response(item) for item in messages]


def _request(message: ModelRequest) -> ModelRequest:
    if not any(isinstance(part, ToolReturnPart) for part in message.parts):
        return message
    parts: list[ModelRequestPart] = [
        UserPromptPart(f"Result of {part.tool_name}:\n{part.model_response_str()}")
        if isinstance(part, ToolReturnPart)
        else part
        for part in message.parts
    ]
    return ModelRequest(parts=parts, instructions=message.instructions)


def _response(message: ModelResponse) -> ModelResponse:
    if not any(isinstance(part, ToolCallPart) for part in message.parts):
        return message
    parts: list[ModelResponsePart] = [
        TextPart(call_text(part.tool_name, part.args_as_json_str())) if isinstance(part, ToolCallPart) else part
        for part in message.parts
    ]
    return ModelResponse(parts=parts)


def call_text(name: str, arguments: str) -> str:
    return f'{{"tool": {json.dumps(name)}, "arguments": {arguments}}}'


def with_system(messages: list[ModelMessage], text: str) -> list[ModelMessage]:
    """Adds a text after the leading system prompts, where it is part of the stable prefix."""
    if not messages or not isinstance(messages[0], ModelRequest):
        return [ModelRequest(parts=[SystemPromptPart(text)]), *messages]
    first = messages[0]
    parts = list(first.parts)
    place = next((n for n, part in enumerate(parts) if not isinstance(part, SystemPromptPart)), len(parts))
    parts.insert(place, SystemPromptPart(text))
    return [ModelRequest(parts=parts, instructions=first.instructions), *messages[1:]]
