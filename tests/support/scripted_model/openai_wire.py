"""Replies in the shape of OpenAI's chat completions."""

from __future__ import annotations

import json
from typing import Any

from support.scripted_model.conversation import Conversation, Json
from support.scripted_model.script import Call, Failure, Reply


def pieces(text: str, count: int) -> list[str]:
    """A text in at most `count` pieces, none of them empty."""
    size = max(1, -(-len(text) // count))
    return [text[start : start + size] for start in range(0, len(text), size)]


def arguments_text(call: Call) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


def output_tokens(reply: Reply) -> int:
    if reply.output_tokens is not None:
        return reply.output_tokens
    calls = sum(len(call.name) + len(arguments_text(call)) for call in reply.tool_calls)
    return (len(reply.text) + len(reply.think) + calls) // 4 + 1


def _usage(reply: Reply, talk: Conversation) -> Json:
    given = reply.input_tokens if reply.input_tokens is not None else talk.input_tokens
    made = output_tokens(reply)
    usage: Json = {
        "prompt_tokens": given,
        "completion_tokens": made,
        "total_tokens": given + made,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
    }
    return usage if reply.cost is None else {**usage, "cost": reply.cost}


def _finish(reply: Reply) -> str:
    return reply.finish or ("tool_calls" if reply.tool_calls else "stop")


def _calls(reply: Reply, seat: int) -> list[Json]:
    return [
        {
            "index": index,
            "id": f"call_{seat}_{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": arguments_text(call)},
        }
        for index, call in enumerate(reply.tool_calls)
    ]


def whole(reply: Reply, talk: Conversation, number: int) -> Json:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.think:
        message["reasoning"] = reply.think
    if reply.tool_calls:
        message["tool_calls"] = [
            {k: v for k, v in call.items() if k != "index"} for call in _calls(reply, len(talk.turns))
        ]
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": talk.model,
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(reply)}],
        "usage": _usage(reply, talk),
    }


def chunks(reply: Reply, talk: Conversation, number: int) -> tuple[list[bytes], list[bytes]]:
    """The pieces of the stream, and its end, which a broken stream never reaches."""

    def chunk(delta: Json, finish: str | None = None) -> bytes:
        return _event(
            {
                "id": f"chatcmpl-{number}",
                "object": "chat.completion.chunk",
                "created": 1_700_000_000,
                "model": talk.model,
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            },
            reply.raw_unicode,
        )

    body = [chunk({"role": "assistant", "reasoning": piece}) for piece in pieces(reply.think, reply.chunks)]
    body += [chunk({"role": "assistant", "content": piece}) for piece in pieces(reply.text, reply.chunks)]
    for call in _calls(reply, len(talk.turns)):
        # The name comes first and the arguments in two halves, as providers do it.
        arguments = call["function"]["arguments"]
        body.append(chunk({"tool_calls": [{**call, "function": {"name": call["function"]["name"], "arguments": ""}}]}))
        body += [
            chunk({"tool_calls": [{"index": call["index"], "function": {"arguments": piece}}]})
            for piece in pieces(arguments, 2)
        ]
    usage = {**json.loads(chunk({})[6:]), "choices": [], "usage": _usage(reply, talk)}
    counted = [] if reply.no_usage else [_event(usage)]
    return body, [chunk({}, _finish(reply)), *counted, b"data: [DONE]\n\n"]


def error(failure: Failure) -> Json:
    kind = failure.code or {401: "invalid_api_key", 429: "rate_limit_exceeded"}.get(failure.status, "scripted")
    return {"error": {"message": failure.message, "type": kind, "code": kind, "param": None}}


def error_event(failure: Failure) -> bytes:
    return _event(error(failure))


def _event(data: Json, raw: bool = False) -> bytes:
    return b"data: " + json.dumps(data, ensure_ascii=not raw).encode() + b"\n\n"
