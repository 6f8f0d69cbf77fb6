"""How many tokens a request will have, well enough for a cap and without a tokenizer's tables."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolCallPart

from annabelle.core.tools import ToolSpec

_CHARACTERS_PER_TOKEN = 4
_PER_MESSAGE = 4
_PER_IMAGE_OR_FILE = 1000


def estimated_tokens(messages: Sequence[ModelMessage], tools: Sequence[ToolSpec] = ()) -> int:
    """Characters by four, plus what each message and tool carries around itself."""
    characters = sum(len(tool.name) + len(tool.description) + len(str(tool.input_schema)) for tool in tools)
    extra = 0
    for message in messages:
        extra += _PER_MESSAGE
        if isinstance(message, ModelRequest) and message.instructions:
            characters += len(message.instructions)
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                characters += len(part.tool_name) + len(str(part.args or ""))
                continue
            content: object = getattr(part, "content", "")
            if isinstance(content, str):
                characters += len(content)
            elif isinstance(content, list | tuple):
                for item in content:  # pyright: ignore[reportUnknownVariableType]
                    if isinstance(item, str):
                        characters += len(item)
                    else:
                        extra += _PER_IMAGE_OR_FILE
            elif content is not None:
                characters += len(str(content))
    return characters // _CHARACTERS_PER_TOKEN + extra
