"""Messages as they go to a model: nothing that people or tools wrote can pass for a part of the prompt."""

from __future__ import annotations

from dataclasses import replace

from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart

from annabelle.thinker.context.tags import defused


def harmless(message: ModelRequest) -> ModelRequest:
    """The same message with no tag of ours in what people and tools wrote (CTX-05)."""
    parts = [
        replace(part, content=defused(part.content))
        if isinstance(part, UserPromptPart | ToolReturnPart) and isinstance(part.content, str)
        else part
        for part in message.parts
    ]
    return replace(message, parts=parts)
