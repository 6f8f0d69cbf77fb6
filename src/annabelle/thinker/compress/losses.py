"""Notices what a model missed because it was cut: a value it used all the same, or a question it asked twice."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

from annabelle.thinker.compress.compact import leaves
from annabelle.thinker.compress.identifiers import STRONG, weight
from annabelle.thinker.compress.judge import stands_in
from annabelle.thinker.compress.texts import arguments_of, text_of_block, written


def context_losses(
    before: Sequence[ModelMessage], sent: Sequence[ModelMessage], since: Sequence[ModelMessage], elsewhere: str = ""
) -> int:
    """How many calls in `since` suffered from `sent` going out for `before`; `elsewhere` is what else the model saw."""
    calls = [part for message in since if isinstance(message, ModelResponse) for part in _calls(message)]
    if not calls:
        return 0
    whole, shown = text_of_block(before), f"{text_of_block(sent)}\n{elsewhere}"
    cut = _cut_calls(before, sent)
    return sum(_key(call) in cut or _used_what_was_cut(call, whole, shown) for call in calls)


def _used_what_was_cut(call: ToolCallPart, whole: str, shown: str) -> bool:
    values = {value for key, value in leaves(arguments_of(call)) if weight(value, key) == STRONG}
    return any(stands_in(value, whole) and not stands_in(value, shown) for value in values)


def _cut_calls(before: Sequence[ModelMessage], sent: Sequence[ModelMessage]) -> set[str]:
    """Calls whose result the model has not seen whole any more."""
    shown = {part.tool_call_id: part.content for message in sent for part in _results(message)}
    cut = {
        part.tool_call_id for one in before for part in _results(one) if shown.get(part.tool_call_id) != part.content
    }
    called = [part for message in before if isinstance(message, ModelResponse) for part in _calls(message)]
    return {_key(call) for call in called if call.tool_call_id in cut}


def _calls(message: ModelResponse) -> list[ToolCallPart]:
    return [part for part in message.parts if isinstance(part, ToolCallPart)]


def _results(message: ModelMessage) -> list[ToolReturnPart]:
    return (
        [part for part in message.parts if isinstance(part, ToolReturnPart)]
        if isinstance(message, ModelRequest)
        else []
    )


def _key(call: ToolCallPart) -> str:
    return f"{call.tool_name} {written(arguments_of(call))}"
