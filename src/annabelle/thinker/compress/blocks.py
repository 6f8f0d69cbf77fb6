"""Cuts a conversation into blocks that stay or go as one: a call with its results, a message, an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from annabelle.thinker.context.repair import repaired


@dataclass(frozen=True, slots=True)
class Block:
    """Messages that make sense only together. A fixed one never goes, a frozen one is not even shortened."""

    messages: tuple[ModelMessage, ...]
    fixed: bool = False
    frozen: bool = False


def blocks(messages: Sequence[ModelMessage], goal: ModelMessage) -> list[Block]:
    """The conversation as blocks, repaired on the way.

    Fixed are: system prompts, the user's first message, the goal, what the goal replies to, every message of the user
    since the last answer, and the last block: its results are not worked on yet.
    """
    chain = _with_goal(repaired(messages), messages, goal)
    grouped = _grouped(chain)
    answered = max((place for place, group in enumerate(grouped) if _is_answer(group[-1])), default=-1)
    goal_at = next(place for place, group in enumerate(grouped) if any(one is goal for one in group))
    first = next((place for place, group in enumerate(grouped) if _is_user(group[0])), -1)
    made: list[Block] = []
    for place, group in enumerate(grouped):
        frozen = place in (first, goal_at) or _is_system(group[0])
        asked = _is_user(group[-1]) and place > min(answered, goal_at - 2)
        last = place == len(grouped) - 1 or place == goal_at - 1
        made.append(Block(tuple(group), fixed=frozen or asked or last, frozen=frozen))
    return made


def _with_goal(chain: list[ModelMessage], messages: Sequence[ModelMessage], goal: ModelMessage) -> list[ModelMessage]:
    """The goal is in the chain as the very object, whatever was wrong with what stood around it."""
    if any(one is goal for one in chain):
        return chain
    after = next((place for place, one in enumerate(messages) if one is goal), len(messages))
    return [*repaired(messages[:after]), goal, *repaired(messages[after + 1 :])]


def _grouped(chain: Sequence[ModelMessage]) -> list[list[ModelMessage]]:
    grouped: list[list[ModelMessage]] = []
    for message in chain:
        if (
            grouped
            and isinstance(message, ModelRequest)
            and any(isinstance(part, ToolReturnPart) for part in message.parts)
        ):
            grouped[-1].append(message)
        else:
            grouped.append([message])
    return grouped


def _is_system(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(part, SystemPromptPart) for part in message.parts)


def _is_user(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)


def _is_answer(message: ModelMessage) -> bool:
    """A response that says something and calls nothing: after it nothing is open."""
    if not isinstance(message, ModelResponse) or any(isinstance(part, ToolCallPart) for part in message.parts):
        return False
    return any(isinstance(part, TextPart) and part.content.strip() for part in message.parts)
