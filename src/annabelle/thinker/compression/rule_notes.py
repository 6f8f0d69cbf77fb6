"""What the rules know about the state of a turn without a model: what failed, what is open, what is left (CMP-02)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelRequest

from annabelle.thinker.compression.conversation_draft import is_answer, is_user
from annabelle.thinker.compression.message_text import (
    call_arguments,
    dump_arguments,
    render_messages,
    result_text,
    shorten,
    tool_calls,
    tool_results,
)

ANSWER_THE_USER: Final = "Answer the user's message."
_MAX_PER_KIND: Final = 3
_QUOTE_CHARS: Final = 100


@dataclass(frozen=True, slots=True)
class RuleNotes:
    insights: tuple[str, ...]
    next_actions: str


def take_rule_notes(messages: Sequence[ModelMessage], goal: ModelRequest, open_tasks: Sequence[str] = ()) -> RuleNotes:
    """Failures and open calls of the turn that began with `goal`, earlier messages without an answer, open tasks."""
    start = next((place for place, message in enumerate(messages) if message is goal), len(messages))
    turn = messages[start:]
    open_calls = _find_open_calls(turn)
    unanswered = _find_unanswered(messages[:start])
    insights = [
        *_find_failures(turn)[-_MAX_PER_KIND:],
        *(f"{call} has no result yet." for call in open_calls[-_MAX_PER_KIND:]),
        *(f'Not answered yet: "{text}"' for text in unanswered[-_MAX_PER_KIND:]),
    ]
    actions = [
        *(f"Get the result of {call}." for call in open_calls[:_MAX_PER_KIND]),
        *(f"Task: {shorten(task, _QUOTE_CHARS)}." for task in open_tasks[:_MAX_PER_KIND]),
        *([f"{len(open_tasks) - _MAX_PER_KIND} more tasks."] if len(open_tasks) > _MAX_PER_KIND else []),
        ANSWER_THE_USER,
    ]
    return RuleNotes(tuple(insights), " ".join(actions))


def _find_failures(turn: Sequence[ModelMessage]) -> list[str]:
    """The last failure of each tool; none for a tool that worked afterwards."""
    failures: dict[str, str] = {}
    for part in tool_results(turn):
        failures.pop(part.tool_name, None)
        if part.outcome != "success":
            failures[part.tool_name] = f"{part.tool_name} failed: {shorten(result_text(part), _QUOTE_CHARS)}"
    return list(failures.values())


def _find_open_calls(turn: Sequence[ModelMessage]) -> list[str]:
    answered = {part.tool_call_id for part in tool_results(turn)}
    return [
        f"{part.tool_name} {shorten(dump_arguments(call_arguments(part)), _QUOTE_CHARS)}"
        for part in tool_calls(turn)
        if part.tool_call_id not in answered
    ]


def _find_unanswered(before: Sequence[ModelMessage]) -> list[str]:
    """What the user wrote after the last answer and before the goal."""
    last_answer = max((place for place, message in enumerate(before) if is_answer(message)), default=-1)
    texts = [render_messages([message], results=False) for message in before[last_answer + 1 :] if is_user(message)]
    return [shorten(text, _QUOTE_CHARS) for text in texts if text.strip()]
