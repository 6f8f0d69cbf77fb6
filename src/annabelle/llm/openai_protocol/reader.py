"""Reads the chunks of a chat completion into deltas and, at the end, one response."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import cast

from pydantic_ai.messages import FinishReason, ModelResponse, ModelResponsePart, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.usage import RequestUsage

from annabelle.core.ids import new_id
from annabelle.core.tools import JsonObject
from annabelle.llm.estimate import MOST_TOKENS
from annabelle.llm.openai_protocol.think_tags import ThinkTags
from annabelle.llm.types import TextDelta, ThinkDelta

_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_call",
    "function_call": "tool_call",
    "content_filter": "content_filter",
}

_MOST_USD = 1e6  # no single call costs more; a price that says so is a mistake


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])


def read_chunk(text: bytes) -> object:
    """A chunk's JSON, with a mark for each half of a surrogate pair: no file and no wire of ours could hold one."""
    value = cast("object", json.loads(text))
    if b"\\ud" in text.lower():
        whole = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        value = cast("object", json.loads(whole))
    return value


class ChunkReader:
    """One response in the making. `finished` tells a whole answer from one that broke off."""

    def __init__(self) -> None:
        self._tags = ThinkTags()
        self._text: list[str] = []
        self._thought: list[str] = []
        self._calls: dict[int, _Call] = {}
        self._finish: str | None = None
        self._usage: JsonObject | None = None
        self._model = ""
        self._id = ""

    @property
    def finished(self) -> bool:
        return self._finish is not None

    def feed(self, chunk: JsonObject) -> list[TextDelta | ThinkDelta]:
        """Take one chunk, or one whole unstreamed completion; give back what became readable by it."""
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
            place = max(self._calls) + 1  # some servers give every call of a step the index 0
        call = self._calls.setdefault(place, _Call())
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
        """The whole response. A server that counts no tokens gets an estimate, so that the ledger is never blind."""
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
        given, made = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        given = estimated_input if given is None else given
        details = usage.get("prompt_tokens_details")
        cached = _count(cast("JsonObject", details).get("cached_tokens")) if isinstance(details, dict) else None
        return RequestUsage(
            input_tokens=given,
            output_tokens=self.seen_characters // 4 + 1 if made is None else made,
            cache_read_tokens=min(cached or 0, given),
        )

    @property
    def stated_cost(self) -> float | None:
        """What the provider says it charged (OpenRouter does)."""
        cost = self._usage.get("cost") if self._usage is not None else None
        return float(cost) if isinstance(cost, int | float) and 0 <= cost <= _MOST_USD else None


def _count(value: object) -> int | None:
    """A number of tokens; none when it can not be one, as a word or less than nothing."""
    return int(value) if isinstance(value, int | float) and 0 <= value <= MOST_TOKENS else None
