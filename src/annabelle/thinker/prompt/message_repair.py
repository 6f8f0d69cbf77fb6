"""Repairs a list of messages so that every provider accepts it: each call answered once, right after it (CTX-03)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

NO_RESULT: Final = "Error: no result was recorded."
_ID_CHARS = 40


def repair_messages(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The conversation as a valid chain; messages that need no repair stay the same objects.

    Results without a call are dropped, a call without a result gets an error, and of two results the first counts. A
    repeated call id is replaced, because providers require unique ids. Empty parts are dropped.
    """
    chain: list[ModelMessage] = []
    used: set[str] = set()
    place = 0
    while place < len(messages):
        message = messages[place]
        place += 1
        if isinstance(message, ModelRequest):
            _append_message(chain, message, _without_results(message))
            continue
        following = place
        while following < len(messages) and isinstance(messages[following], ModelRequest):
            following += 1
        requests = [one for one in messages[place:following] if isinstance(one, ModelRequest)]
        chain += _repair_exchange(message, requests, used)
        place = following
    return chain


def _repair_exchange(response: ModelResponse, requests: Sequence[ModelRequest], used: set[str]) -> list[ModelMessage]:
    """Repair a response and the requests up to the next one: all results move into the first request, in order."""
    recorded: dict[str, ToolReturnPart] = {}
    for request in requests:
        for part in request.parts:
            if isinstance(part, ToolReturnPart):
                recorded.setdefault(part.tool_call_id, part)
    parts: list[ModelResponsePart] = []
    answers: list[ModelRequestPart] = []
    for part in response.parts:
        if not isinstance(part, ToolCallPart):
            parts += [part] if _has_content(part) else []
            continue
        call = _with_unique_id(part, used)
        used.add(call.tool_call_id)
        parts.append(call)
        # Of two calls with one id the first gets the result: it is unknown which one it belongs to.
        answers.append(_result_for(call, recorded.pop(part.tool_call_id, None), response))
    chain: list[ModelMessage] = []
    _append_message(chain, response, parts)
    rest = list(requests)
    if answers and rest and any(isinstance(part, ToolReturnPart) for part in rest[0].parts):
        first = rest.pop(0)
        _append_message(chain, first, [*answers, *_without_results(first)])
    elif answers:
        # A separate request, so that the user's message stays the same object.
        chain.append(ModelRequest(parts=answers, timestamp=response.timestamp))
    for request in rest:
        _append_message(chain, request, _without_results(request))
    return chain


def _result_for(call: ToolCallPart, recorded: ToolReturnPart | None, response: ModelResponse) -> ToolReturnPart:
    name, call_id = call.tool_name, call.tool_call_id
    if recorded is None:
        return ToolReturnPart(name, NO_RESULT, call_id, timestamp=response.timestamp, outcome="failed")
    if (recorded.tool_name, recorded.tool_call_id) == (name, call_id):
        return recorded
    return replace(recorded, tool_name=name, tool_call_id=call_id)


def _with_unique_id(call: ToolCallPart, used: set[str]) -> ToolCallPart:
    wanted, number = call.tool_call_id, 1
    while not wanted or wanted in used:
        number += 1
        ending = f"-{number}"
        wanted = f"{(call.tool_call_id or 'call')[: _ID_CHARS - len(ending)]}{ending}"
    return call if wanted == call.tool_call_id else replace(call, tool_call_id=wanted)


def _without_results(request: ModelRequest) -> list[ModelRequestPart]:
    """All parts but results and retry prompts; the latter are results in a session."""
    return [
        part
        for part in request.parts
        if not isinstance(part, ToolReturnPart) and part.part_kind != "retry-prompt" and _has_content(part)
    ]


def _has_content(part: ModelRequestPart | ModelResponsePart) -> bool:
    """False for empty text, for which some providers refuse the whole request."""
    return not (isinstance(part, TextPart | UserPromptPart) and not _is_filled(part.content))


def _is_filled(content: object) -> bool:
    return bool(content.strip()) if isinstance(content, str) else bool(content)


def _append_message(
    chain: list[ModelMessage], message: ModelMessage, parts: Sequence[ModelRequestPart] | Sequence[ModelResponsePart]
) -> None:
    if len(parts) == len(message.parts) and all(a is b for a, b in zip(parts, message.parts, strict=True)):
        if parts:
            chain.append(message)
    elif parts:
        chain.append(replace(message, parts=list(parts)))  # pyright: ignore[reportArgumentType]
