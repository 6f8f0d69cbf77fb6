"""Messages as plain text, for whoever looks for words in them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from annabelle.core.tools import JsonObject


def text_of_block(messages: Sequence[ModelMessage], *, results: bool = True) -> str:
    """What people, the model and, unless left out, the tools said in these messages."""
    return "\n".join(text for message in messages for text in _texts(message, results=results) if text)


def _texts(message: ModelMessage, *, results: bool) -> Iterator[str]:
    if isinstance(message, ModelResponse):
        for part in message.parts:
            if isinstance(part, TextPart):
                yield part.content
            elif isinstance(part, ToolCallPart):
                yield f"{part.tool_name} {written(arguments_of(part))}"
        return
    for part in message.parts:
        if isinstance(part, ToolReturnPart):
            yield result_text(part) if results else ""
        elif isinstance(part, UserPromptPart):
            yield user_text(part)
        elif isinstance(part, SystemPromptPart):
            yield part.content


def user_text(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    return "\n".join(item for item in part.content if isinstance(item, str))


def result_text(part: ToolReturnPart) -> str:
    return part.content if isinstance(part.content, str) else part.model_response_str()


def arguments_of(call: ToolCallPart) -> JsonObject:
    """The arguments as an object; what a model wrote wrongly stays readable under one name."""
    try:
        return call.args_as_dict()
    except (ValueError, AssertionError):
        return {"arguments": str(call.args)}


def written(arguments: JsonObject) -> str:
    """Arguments as they are told apart and searched: JSON with sorted names."""
    return json.dumps(arguments, ensure_ascii=False, sort_keys=True, default=str)
