"""Holds a shortened conversation against what came next in it: does the next call still find what it needs?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart

from annabelle.thinker.compress.compact import leaves
from annabelle.thinker.compress.texts import arguments_of, text_of_block

_LONGEST_VALUE: Final = 60
# Of a sentence, its words with a digit, an underline or an address in them. Kept apart from how the shortening itself
# tells what is needed: a judge who asks the judged is none.
_TELLING: Final = re.compile(r"[\w.@#/-]*[\d_@][\w@#/-]*\w")


@dataclass(frozen=True, slots=True)
class Moment:
    """A conversation right before a response that calls tools, and the values those calls took out of it."""

    before: list[ModelMessage]
    goal: ModelRequest
    needed: frozenset[str]


def moments(messages: Sequence[ModelMessage]) -> Iterator[Moment]:
    """Every response with calls, except before the user's first message."""
    goal: ModelRequest | None = None
    for place, message in enumerate(messages):
        if isinstance(message, ModelRequest):
            if any(isinstance(part, UserPromptPart) for part in message.parts):
                goal = message
        elif goal is not None:
            calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
            if calls:
                before = list(messages[:place])
                yield Moment(before, goal, frozenset(needed_by(calls, before)))


def needed_by(calls: Sequence[ToolCallPart], before: Sequence[ModelMessage]) -> set[str]:
    """Values of these calls that stand in the conversation before them; of a sentence, the identifiers in it."""
    text = text_of_block(before)
    values: set[str] = set()
    for call in calls:
        for _, value in leaves(arguments_of(call)):
            values |= {value} if len(value) <= _LONGEST_VALUE else set(_TELLING.findall(value))
    return {value for value in values if len(value) > 1 and stands_in(value, text)}


def lost(moment_needed: frozenset[str], after: Sequence[ModelMessage]) -> set[str]:
    """What is needed and stands there no more."""
    text = text_of_block(after)
    return {value for value in moment_needed if not stands_in(value, text)}


def stands_in(value: str, text: str) -> bool:
    """As a word of its own: 12 does not stand in 2012."""
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


def valid(messages: Sequence[ModelMessage]) -> bool:
    """Every call answered by the message right behind it, every result called for right before it, ids used once."""
    used: set[str] = set()
    for place, message in enumerate(messages):
        if not message.parts:
            return False
        answered = _results(messages[place + 1]) if place + 1 < len(messages) else []
        if isinstance(message, ModelResponse):
            called = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
            if sorted(called) != sorted(answered) or used & set(called) or len(set(called)) != len(called):
                return False
            used |= set(called)
        elif answered or (place == 0 and _results(message)):
            return False
    return True


def _results(message: ModelMessage) -> list[str]:
    if not isinstance(message, ModelRequest):
        return []
    return [part.tool_call_id for part in message.parts if isinstance(part, ToolReturnPart)]
