"""The OpenAI chat-completions format: requests from conversations and tools, and responses from streamed chunks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import cast

from pydantic_ai.messages import (
    BinaryContent,
    FinishReason,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    RetryFeedbackPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from annabelle.core.ids import new_id
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.llm.model_tools import inline_references
from annabelle.llm.token_estimate import MOST_TOKENS
from annabelle.llm.types import TextDelta, ThinkDelta, ToolChoice

OpenAiMessage = JsonObject


def format_messages(messages: list[ModelMessage], *, one_system: bool) -> list[OpenAiMessage]:
    """Formats a conversation.

    `one_system`: many local chat templates allow one system message at the start and strictly alternating roles. So
    later system texts become user messages, and adjacent messages of one role are joined.
    """
    wire: list[OpenAiMessage] = []
    for message in messages:
        wire += _format_request(message) if isinstance(message, ModelRequest) else _format_response(message)
    return _join_neighbours(wire) if one_system else wire


def _format_request(message: ModelRequest) -> list[OpenAiMessage]:
    wire: list[OpenAiMessage] = []
    if message.instructions:
        wire.append({"role": "system", "content": message.instructions})
    for part in message.parts:
        if isinstance(part, SystemPromptPart):
            wire.append({"role": "system", "content": part.content})
        elif isinstance(part, UserPromptPart):
            wire.append({"role": "user", "content": _format_user_content(part.content)})
        elif isinstance(part, ToolReturnPart):
            text = part.model_response_str()
            wire.append({"role": "tool", "tool_call_id": part.tool_call_id, "content": text})
        elif isinstance(part, RetryFeedbackPart):
            wire.append({"role": "user", "content": part.model_response()})
    return wire


def _format_user_content(content: object) -> object:
    if isinstance(content, str):
        return content
    pieces: list[JsonObject] = []
    if isinstance(content, list | tuple):
        for item in content:  # pyright: ignore[reportUnknownVariableType]
            piece = _format_content_piece(item)  # pyright: ignore[reportUnknownArgumentType]
            if piece is not None:
                pieces.append(piece)
    if all(piece["type"] == "text" for piece in pieces):
        return "\n\n".join(str(piece["text"]) for piece in pieces)  # simple servers accept only strings
    return pieces


def _format_content_piece(item: UserContent) -> JsonObject | None:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if isinstance(item, TextContent):
        return {"type": "text", "text": item.content}
    if isinstance(item, ImageUrl):
        return {"type": "image_url", "image_url": {"url": item.url}}
    if isinstance(item, BinaryContent) and item.is_image:
        return {"type": "image_url", "image_url": {"url": item.data_uri}}
    return None


def _format_response(message: ModelResponse) -> list[OpenAiMessage]:
    text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
    calls = [
        {
            "id": part.tool_call_id,
            "type": "function",
            "function": {"name": part.tool_name, "arguments": part.args_as_json_str()},
        }
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]
    if not text and not calls:
        return []
    wire: OpenAiMessage = {"role": "assistant", "content": text or None}
    if calls:
        wire["tool_calls"] = calls
    return [wire]


def _join_neighbours(wire: list[OpenAiMessage]) -> list[OpenAiMessage]:
    joined: list[OpenAiMessage] = []
    for item in wire:
        message = item
        role, content = message["role"], message.get("content")
        last = joined[-1] if joined else None
        if role == "system" and last is not None and last["role"] != "system":
            role, content = "user", f"<context>\n{content}\n</context>"
            message = OpenAiMessage(role=role, content=content)
        old = last.get("content") if last is not None else None
        same = last is not None and last["role"] == role and role in ("system", "user")
        if last is not None and same and isinstance(old, str) and isinstance(content, str):
            joined[-1] = {**last, "content": f"{old}\n\n{content}"}
        else:
            joined.append(message)
    return joined


def format_tools(tools: list[ToolSpec]) -> list[JsonObject]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": inline_references(tool.input_schema) or {"type": "object", "properties": {}},
            },
        }
        for tool in tools
    ]


def format_tool_choice(choice: ToolChoice, tools: list[ToolSpec]) -> tuple[object, list[ToolSpec]]:
    """Returns the `tool_choice` field, and the remaining tools."""
    if isinstance(choice, str):
        return choice, tools
    named = [tool for tool in tools if tool.name in choice]
    if len(named) == 1:
        return {"type": "function", "function": {"name": named[0].name}}, named
    # Few servers accept a list of names; offering only these and requiring one is equivalent.
    return "required", named


_OPEN, _CLOSE = "<think>", "</think>"


class ThinkTagSplitter:
    """Separates reasoning from text in streamed pieces. Only a tag at the very start of the answer counts."""

    def __init__(self) -> None:
        self._state = "start"
        self._held = ""

    def feed(self, piece: str) -> list[TextDelta | ThinkDelta]:
        if self._state == "text":
            return [TextDelta(piece)] if piece else []
        self._held += piece
        if self._state == "start":
            begun = self._held.lstrip()
            if begun.startswith(_OPEN):
                self._state, self._held = "think", begun[len(_OPEN) :]
            elif not begun or _OPEN.startswith(begun):
                return []  # it may still become a tag
            else:
                self._state = "text"
                return self._release(TextDelta)
        return self._thinking()

    def finish(self) -> list[TextDelta | ThinkDelta]:
        """Returns what was held back because a tag might have followed."""
        kind = ThinkDelta if self._state == "think" else TextDelta
        return self._release(kind) if self._held.strip() else []

    def _thinking(self) -> list[TextDelta | ThinkDelta]:
        before, tag, after = self._held.partition(_CLOSE)
        if tag:
            self._state, self._held = "text", ""
            events: list[TextDelta | ThinkDelta] = [ThinkDelta(before)] if before.strip() else []
            after = after.lstrip()
            return [*events, TextDelta(after)] if after else events
        keep = next((n for n in range(len(_CLOSE) - 1, 0, -1) if self._held.endswith(_CLOSE[:n])), 0)
        out, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return [ThinkDelta(out)] if out else []

    def _release(self, kind: type[TextDelta] | type[ThinkDelta]) -> list[TextDelta | ThinkDelta]:
        text, self._held = self._held, ""
        return [kind(text)] if text else []


_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_call",
    "function_call": "tool_call",
    "content_filter": "content_filter",
}

_MOST_USD = 1e6  # no single call costs more; a higher price is a mistake


@dataclass(slots=True)
class _StreamedCall:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])


def parse_chunk(text: bytes) -> object:
    """Parses a chunk and replaces lone surrogates, which our files and connections cannot hold."""
    value = cast("object", json.loads(text))
    if b"\\ud" in text.lower():
        whole = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        value = cast("object", json.loads(whole))
    return value


class ChunkReader:
    """Builds one response from chunks. `finished` tells a complete answer from a broken one."""

    def __init__(self) -> None:
        self._tags = ThinkTagSplitter()
        self._text: list[str] = []
        self._thought: list[str] = []
        self._calls: dict[int, _StreamedCall] = {}
        self._finish: str | None = None
        self._usage: JsonObject | None = None
        self._model = ""
        self._id = ""

    @property
    def finished(self) -> bool:
        return self._finish is not None

    def feed(self, chunk: JsonObject) -> list[TextDelta | ThinkDelta]:
        """Takes one chunk, or a whole unstreamed completion, and returns the new text."""
        self._model = str(chunk.get("model") or self._model)
        self._id = str(chunk.get("id") or self._id)
        groq = chunk.get("x_groq")
        usage = chunk.get("usage") or (cast("JsonObject", groq).get("usage") if isinstance(groq, dict) else None)
        if isinstance(usage, dict):
            self._usage = cast("JsonObject", usage)
        choices = cast("list[JsonObject]", chunk.get("choices") or [])
        if not choices:
            return []
        choice = choices[0]
        delta = cast("JsonObject", choice.get("delta") or choice.get("message") or {})
        events: list[TextDelta | ThinkDelta] = []
        thought = delta.get("reasoning") or delta.get("reasoning_content")
        if isinstance(thought, str) and thought:
            events.append(ThinkDelta(thought))
        content = delta.get("content")
        if isinstance(content, str) and content:
            events += self._tags.feed(content)
        for call in cast("list[JsonObject]", delta.get("tool_calls") or []):
            self._take_call(call)
        if choice.get("finish_reason"):
            self._finish = str(choice["finish_reason"])
            events += self._tags.finish()
        return self._remember(events)

    def _remember(self, events: list[TextDelta | ThinkDelta]) -> list[TextDelta | ThinkDelta]:
        for event in events:
            (self._text if isinstance(event, TextDelta) else self._thought).append(event.text)
        return events

    def _take_call(self, piece: JsonObject) -> None:
        function = cast("JsonObject", piece.get("function") or {})
        call_id, name = str(piece.get("id") or ""), str(function.get("name") or "")
        index = piece.get("index")
        place = (
            index if isinstance(index, int) else max(self._calls, default=-1) + (1 if name or not self._calls else 0)
        )
        known = self._calls.get(place)
        if known is not None and name and call_id and known.id and known.id != call_id:
            place = max(self._calls) + 1  # some servers give every call of a step index 0
        call = self._calls.setdefault(place, _StreamedCall())
        call.id = call.id or call_id
        call.name = call.name or name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.arguments.append(arguments)

    @property
    def seen_characters(self) -> int:
        calls = sum(len(call.name) + sum(map(len, call.arguments)) for call in self._calls.values())
        return sum(map(len, self._text)) + sum(map(len, self._thought)) + calls

    def response(self, provider: str, model: str, estimated_input: int) -> ModelResponse:
        """Returns the whole response, with estimated tokens if the server counts none."""
        parts: list[ModelResponsePart] = []
        if self._thought:
            parts.append(ThinkingPart("".join(self._thought)))
        if text := "".join(self._text):
            parts.append(TextPart(text))
        for _, call in sorted(self._calls.items()):
            if call.name:
                arguments = "".join(call.arguments) or "{}"
                parts.append(ToolCallPart(call.name, arguments, tool_call_id=call.id or new_id("call")))
        return ModelResponse(
            parts=parts,
            usage=self._request_usage(estimated_input),
            model_name=self._model or model,
            provider_name=provider,
            provider_response_id=self._id or None,
            finish_reason=_FINISH.get(self._finish or "", "stop"),
        )

    def _request_usage(self, estimated_input: int) -> RequestUsage:
        usage = self._usage
        if usage is None:
            return RequestUsage(input_tokens=estimated_input, output_tokens=self.seen_characters // 4 + 1)
        given, made = _parse_count(usage.get("prompt_tokens")), _parse_count(usage.get("completion_tokens"))
        given = estimated_input if given is None else given
        details = usage.get("prompt_tokens_details")
        cached = _parse_count(cast("JsonObject", details).get("cached_tokens")) if isinstance(details, dict) else None
        return RequestUsage(
            input_tokens=given,
            output_tokens=self.seen_characters // 4 + 1 if made is None else made,
            cache_read_tokens=min(cached or 0, given),
        )

    @property
    def stated_cost(self) -> float | None:
        """The cost stated by the provider; OpenRouter does."""
        cost = self._usage.get("cost") if self._usage is not None else None
        return float(cost) if isinstance(cost, int | float) and 0 <= cost <= _MOST_USD else None


def _parse_count(value: object) -> int | None:
    """Parses a token count; None if it is not a plausible number."""
    return int(value) if isinstance(value, int | float) and 0 <= value <= MOST_TOKENS else None
