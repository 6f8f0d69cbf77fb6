"""Messages as plain text, and the changes since the last cycle in a few lines (CMP-10)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

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
from annabelle.thinker.prompt.escape import escape_text
from annabelle.thinker.prompt.token_budget import fit_pieces


def render_messages(messages: Sequence[ModelMessage], *, results: bool = True) -> str:
    """The text of messages, with or without tool results."""
    return "\n".join(text for message in messages for text in _message_texts(message, results=results) if text)


def _message_texts(message: ModelMessage, *, results: bool) -> Iterator[str]:
    if isinstance(message, ModelResponse):
        for part in message.parts:
            if isinstance(part, TextPart):
                yield part.content
            elif isinstance(part, ToolCallPart):
                yield f"{part.tool_name} {dump_arguments(call_arguments(part))}"
        return
    for part in message.parts:
        if isinstance(part, ToolReturnPart):
            yield result_text(part) if results else ""
        elif isinstance(part, UserPromptPart):
            yield user_prompt_text(part)
        elif isinstance(part, SystemPromptPart):
            yield part.content


def tool_calls(messages: Sequence[ModelMessage]) -> list[ToolCallPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolCallPart)]


def tool_results(messages: Sequence[ModelMessage]) -> list[ToolReturnPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def response_text(response: ModelResponse) -> str:
    return "".join(part.content for part in response.parts if isinstance(part, TextPart)).strip()


def user_prompt_text(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    return "\n".join(item for item in part.content if isinstance(item, str))


def result_text(part: ToolReturnPart) -> str:
    return part.content if isinstance(part.content, str) else part.model_response_str()


def call_arguments(call: ToolCallPart) -> JsonObject:
    """The arguments as an object; malformed ones as text under one name."""
    try:
        return call.args_as_dict()
    except (ValueError, AssertionError):
        return {"arguments": str(call.args)}


def dump_arguments(arguments: JsonObject) -> str:
    """Arguments as JSON with sorted keys, to compare and search."""
    return json.dumps(arguments, ensure_ascii=False, sort_keys=True, default=str)


def shorten(text: str, max_chars: int) -> str:
    """The text on one line, cut with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[:max_chars]}…"


CONTEXT_TOKENS: Final = 150
_OUTCOME_CHARS: Final = 70
_LINE_CHARS: Final = 100


def describe_changes(since: Sequence[ModelMessage], workspace_before: str, workspace_now: str) -> str:
    """Outcomes of the latest calls, and changed lines of the workspace; empty if nothing changed."""
    lines = [_describe_result(part) for part in tool_results(since)]
    lines += _workspace_difference(workspace_before, workspace_now) if workspace_before else []
    fitted = fit_pieces(lines, CONTEXT_TOKENS - 10)
    rest = [f"and {fitted.left_out} more"] if fitted.left_out else []
    return "\n".join([*fitted.pieces, *rest])


def _describe_result(part: ToolReturnPart) -> str:
    short = shorten(result_text(part), _OUTCOME_CHARS)
    return f"{part.tool_name} {'worked' if part.outcome == 'success' else 'failed'}: {escape_text(short)}"


def _workspace_difference(before: str, now: str) -> list[str]:
    old, new = before.splitlines(), now.splitlines()
    gone, come = set(old) - set(new), set(new) - set(old)
    lines = [f"workspace, new: {line.strip()[:_LINE_CHARS]}" for line in new if line in come and line.strip()]
    return lines + [f"workspace, gone: {line.strip()[:_LINE_CHARS]}" for line in old if line in gone and line.strip()]
