"""Two usual ways to shorten a conversation, to compare with."""

from __future__ import annotations

from dataclasses import replace

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart

from annabelle.llm.token_estimate import estimate_tokens
from annabelle.thinker.prompt.message_repair import repair_messages

_CUT = 200


def latest(messages: list[ModelMessage], goal: ModelRequest, budget: int) -> list[ModelMessage]:
    """The system prompt, and the latest messages that fit."""
    head = [messages[0]] if messages[0].parts[0].part_kind == "system-prompt" else []
    kept: list[ModelMessage] = []
    for message in reversed(messages[len(head) :]):
        if estimate_tokens([*head, message, *kept]) > budget:
            break
        kept.insert(0, message)
    while kept and isinstance(kept[0], ModelRequest) and any(isinstance(p, ToolReturnPart) for p in kept[0].parts):
        kept.pop(0)
    return repair_messages([*head, *kept])


def old_results_cut(messages: list[ModelMessage], goal: ModelRequest, budget: int) -> list[ModelMessage]:
    """Results cut to their beginning, the oldest first, until it fits; calls stay with their results."""
    kept = list(messages)
    for place, message in enumerate(kept[:-2]):
        if estimate_tokens(kept) <= budget:
            break
        if isinstance(message, ModelRequest):
            parts = [
                replace(part, content=f"{part.content[:_CUT]}…")
                if isinstance(part, ToolReturnPart) and isinstance(part.content, str) and len(part.content) > _CUT
                else part
                for part in message.parts
            ]
            kept[place] = replace(message, parts=parts)
    return repair_messages(kept)
