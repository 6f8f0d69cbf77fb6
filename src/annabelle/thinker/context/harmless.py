"""Messages as they go to a model: nothing that people or tools wrote can pass for a part of the prompt."""

from __future__ import annotations

from dataclasses import replace

from pydantic_ai.messages import ModelRequest, ModelRequestPart, ToolReturnPart, UserPromptPart

from annabelle.thinker.context.tags import defused


def harmless(message: ModelRequest) -> ModelRequest:
    """The same message with no tag of ours in what people and tools wrote (CTX-05)."""
    return replace(message, parts=[_harmless(part) for part in message.parts])


def _harmless(part: ModelRequestPart) -> ModelRequestPart:
    if isinstance(part, ToolReturnPart):
        # What is no text goes to the model as JSON, in which a tag is as good as anywhere.
        return replace(part, content=defused(part.content if isinstance(part.content, str) else _as_text(part)))
    if not isinstance(part, UserPromptPart):
        return part
    if isinstance(part.content, str):
        return replace(part, content=defused(part.content))
    return replace(part, content=[defused(one) if isinstance(one, str) else one for one in part.content])


def _as_text(part: ToolReturnPart) -> str:
    return part.model_response_str()
