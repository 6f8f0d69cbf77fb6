"""Finds values that later calls needed and a compressed conversation no longer showed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, UserPromptPart

from annabelle.thinker.compression.abbreviation import STRONG, identifier_weight, iterate_leaves
from annabelle.thinker.compression.message_text import (
    call_arguments,
    dump_arguments,
    render_messages,
    tool_calls,
    tool_results,
)

_LONGEST_VALUE: Final = 60
# Words with a digit, an underscore or an @. Independent of how the compression decides what is needed, because this
# checks the compression.
_IDENTIFYING_WORD: Final = re.compile(r"[\w.@#/-]*[\d_@][\w@#/-]*\w")


@dataclass(frozen=True, slots=True)
class CallMoment:
    """The conversation before a response with calls, and the values the calls took from it."""

    before: list[ModelMessage]
    goal: ModelRequest
    needed: frozenset[str]


def iterate_moments(messages: Sequence[ModelMessage]) -> Iterator[CallMoment]:
    """Every response with calls, except before the user's first message."""
    goal: ModelRequest | None = None
    for place, message in enumerate(messages):
        if isinstance(message, ModelRequest):
            if any(isinstance(part, UserPromptPart) for part in message.parts):
                goal = message
        elif goal is not None and (calls := tool_calls([message])):
            before = list(messages[:place])
            yield CallMoment(before, goal, frozenset(find_needed_values(calls, before)))


def find_needed_values(calls: Sequence[ToolCallPart], before: Sequence[ModelMessage]) -> set[str]:
    """Values of these calls that occur in the conversation before; of a long text, its identifiers."""
    text = render_messages(before)
    values: set[str] = set()
    for call in calls:
        for _, value in iterate_leaves(call_arguments(call)):
            values |= {value} if len(value) <= _LONGEST_VALUE else set(_IDENTIFYING_WORD.findall(value))
    return {value for value in values if len(value) > 1 and contains_word(value, text)}


def find_lost_values(needed: frozenset[str], after: Sequence[ModelMessage]) -> set[str]:
    """Needed values that no longer occur."""
    text = render_messages(after)
    return {value for value in needed if not contains_word(value, text)}


def contains_word(value: str, text: str) -> bool:
    """As a whole word: 12 is not in 2012."""
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


def is_valid_chain(messages: Sequence[ModelMessage]) -> bool:
    """Whether every call is answered by the next message, every result has a call before it, and ids are unique."""
    used: set[str] = set()
    for place, message in enumerate(messages):
        if not message.parts:
            return False
        answered = [part.tool_call_id for part in tool_results(messages[place + 1 : place + 2])]
        if isinstance(message, ModelResponse):
            called = [part.tool_call_id for part in tool_calls([message])]
            if sorted(called) != sorted(answered) or used & set(called) or len(set(called)) != len(called):
                return False
            used |= set(called)
        elif answered or (place == 0 and tool_results([message])):
            return False
    return True


def count_context_losses(
    before: Sequence[ModelMessage], sent: Sequence[ModelMessage], since: Sequence[ModelMessage], elsewhere: str = ""
) -> int:
    """Calls in `since` that needed what `sent` left out of `before`; `elsewhere` is what else the model saw."""
    calls = tool_calls(since)
    if not calls:
        return 0
    whole, shown = render_messages(before), f"{render_messages(sent)}\n{elsewhere}"
    cut = _find_cut_calls(before, sent)
    return sum(_call_key(call) in cut or _uses_cut_value(call, whole, shown) for call in calls)


def _uses_cut_value(call: ToolCallPart, whole: str, shown: str) -> bool:
    values = {value for key, value in iterate_leaves(call_arguments(call)) if identifier_weight(value, key) == STRONG}
    return any(contains_word(value, whole) and not contains_word(value, shown) for value in values)


def _find_cut_calls(before: Sequence[ModelMessage], sent: Sequence[ModelMessage]) -> set[str]:
    """Calls whose result was shortened or dropped."""
    shown = {part.tool_call_id: part.content for part in tool_results(sent)}
    cut = {part.tool_call_id for part in tool_results(before) if shown.get(part.tool_call_id) != part.content}
    return {_call_key(call) for call in tool_calls(before) if call.tool_call_id in cut}


def _call_key(call: ToolCallPart) -> str:
    return f"{call.tool_name} {dump_arguments(call_arguments(call))}"
