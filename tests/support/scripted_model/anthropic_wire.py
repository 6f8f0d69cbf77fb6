"""Replies in the shape of Anthropic's messages."""

from __future__ import annotations

import json

from support.scripted_model.conversation import Conversation, Json
from support.scripted_model.openai_wire import arguments_text, output_tokens, pieces
from support.scripted_model.script import Failure, Reply


def _usage(reply: Reply, talk: Conversation) -> Json:
    given = reply.input_tokens if reply.input_tokens is not None else talk.input_tokens
    # Anthropic counts what came from its cache beside the input tokens, not inside them.
    return {
        "input_tokens": given - reply.cached_tokens,
        "output_tokens": output_tokens(reply),
        "cache_read_input_tokens": reply.cached_tokens,
        "cache_creation_input_tokens": 0,
    }


def _finish(reply: Reply) -> str:
    return reply.finish or ("tool_use" if reply.tool_calls else "end_turn")


def _blocks(reply: Reply, seat: int) -> list[Json]:
    blocks: list[Json] = []
    if reply.think:
        blocks.append({"type": "thinking", "thinking": reply.think, "signature": "scripted"})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for index, call in enumerate(reply.tool_calls):
        value = call.arguments if isinstance(call.arguments, dict) else {}
        blocks.append({"type": "tool_use", "id": f"toolu_{seat}_{index}", "name": call.name, "input": value})
    return blocks


def whole(reply: Reply, talk: Conversation, number: int) -> Json:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": talk.model,
        "content": _blocks(reply, len(talk.turns)),
        "stop_reason": _finish(reply),
        "stop_sequence": None,
        "usage": _usage(reply, talk),
    }


def chunks(reply: Reply, talk: Conversation, number: int) -> tuple[list[bytes], list[bytes]]:
    """The pieces of the stream, and its end, which a broken stream never reaches."""
    usage = _usage(reply, talk)
    start = whole(reply, talk, number) | {"content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    body = [_event({"type": "message_start", "message": start})]
    calls = iter(reply.tool_calls)
    for index, block in enumerate(_blocks(reply, len(talk.turns))):
        if block["type"] == "thinking":
            empty = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(reply.think, reply.chunks)]
            deltas.append({"type": "signature_delta", "signature": "scripted"})
        elif block["type"] == "text":
            empty = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": p} for p in pieces(reply.text, reply.chunks)]
        else:
            empty = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": p} for p in pieces(arguments_text(next(calls)), 2)]
        body.append(_event({"type": "content_block_start", "index": index, "content_block": empty}))
        body += [_event({"type": "content_block_delta", "index": index, "delta": delta}) for delta in deltas]
        body.append(_event({"type": "content_block_stop", "index": index}))
    delta = {"stop_reason": _finish(reply), "stop_sequence": None}
    return body, [
        _event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}}),
        _event({"type": "message_stop"}),
    ]


def error(failure: Failure) -> Json:
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error", 529: "overloaded_error"}
    return {"type": "error", "error": {"type": kinds.get(failure.status, "api_error"), "message": failure.message}}


def error_event(failure: Failure) -> bytes:
    return _event(error(failure))


def _event(data: Json) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()
