"""Converts a trace to spans, and spans to OpenTelemetry's JSON (TRC-02).

Events with a duration are recorded when they end. A turn is the parent of everything in its trace after it began.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import cast

_OPERATIONS = {
    "model.called": "chat",
    "tool.finished": "execute_tool",
    "tool.failed": "execute_tool",
    "turn.finished": "invoke_agent",
}
# Our field names and those of OpenTelemetry's GenAI conventions.
_CONVENTIONS = {
    "provider": "gen_ai.provider.name",
    "model": "gen_ai.request.model",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "tool": "gen_ai.tool.name",
    "agent_id": "gen_ai.agent.id",
    "thread_id": "gen_ai.conversation.id",
    "code": "error.type",
    "error": "error.type",
}
# Other fields whose texts are names, codes and ids. All other texts may be what people or models wrote.
_LABELS = frozenset(
    {
        *("message_id", "call_id", "task_id", "id", "channel", "kind", "state", "purpose", "verdict", "method"),
        *("strategy", "outcome", "caller", "template"),
    }
)
_TURNS = frozenset({"turn.started", "turn.finished"})
_KNOWN_TURNS = 1000
_TOOL_CALL = "gen_ai.tool.call.id"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TraceSpan:
    began: datetime
    ended: datetime
    component: str
    event: str
    data: Mapping[str, object]
    trace_id: str = ""


def parse_spans(records: Iterable[Mapping[str, object]]) -> list[TraceSpan]:
    """Parses lines of the trace file into spans, in order of their start; skips lines without a time."""
    spans = [span for record in records if (span := parse_span(record)) is not None]
    return sorted(spans, key=lambda span: (span.began, -span.ended.timestamp()))


def parse_span(record: Mapping[str, object]) -> TraceSpan | None:
    found = record.get("data")
    data = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    duration = data.get("duration_ms")
    try:
        ended = datetime.fromisoformat(str(record.get("ts")))
        ended = ended if ended.tzinfo is not None else ended.replace(tzinfo=UTC)
        began = ended - timedelta(milliseconds=duration if isinstance(duration, int | float) else 0)
    except (ValueError, OverflowError):
        return None
    named = str(record.get("mcp", "")), str(record.get("event", ""))
    return TraceSpan(began, ended, *named, data, str(record.get("trace_id") or ""))


def to_otlp(trace_id: str, spans: Iterable[TraceSpan]) -> dict[str, object]:
    """Exports one trace as OTLP JSON, for any collector's HTTP endpoint."""
    encoder = OtlpEncoder(content=True)
    return group_by_component([(span.component, encoder.encode(replace(span, trace_id=trace_id))) for span in spans])


def group_by_component(spans: Iterable[tuple[str, dict[str, object]]]) -> dict[str, object]:
    """The body of an export request, one resource per component."""
    by_component: dict[str, list[dict[str, object]]] = {}
    for component, span in spans:
        by_component.setdefault(component, []).append(span)
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [_make_attribute("service.name", f"annabelle-{component}")]},
                "scopeSpans": [{"scope": {"name": "annabelle"}, "spans": found}],
            }
            for component, found in by_component.items()
        ]
    }


class OtlpEncoder:
    """Encodes spans in the order they come, and knows which turn each belongs to.

    Without `content`, no text is exported but names, codes and ids. `seed` keeps the ids of encoders apart.
    """

    def __init__(self, *, content: bool, seed: str = "") -> None:
        self._content, self._seed, self._number = content, seed, -1
        self._turns: dict[str, str] = {}

    def encode(self, span: TraceSpan, more: Mapping[str, object] | None = None) -> dict[str, object]:
        """The span in JSON. `more` are attributes in the words of the conventions."""
        self._number += 1
        turn = self._turn_of(span)
        is_turn = span.event == "turn.finished" and turn is not None
        own = turn if is_turn else _hash(f"{self._seed}{span.trace_id}/{self._number}", 16)
        encoded = _encode_span(span, [*self._attributes(span), *_make_attributes(more or {})])
        parent = {} if is_turn or turn is None else {"parentSpanId": turn}
        return {"traceId": _hash(span.trace_id, 32), "spanId": own, **parent, **encoded}

    def _turn_of(self, span: TraceSpan) -> str | None:
        if span.event in _TURNS and "message_id" in span.data:
            # The id is known when the turn begins, so that what happens in it can name its parent before it ends.
            self._turns[span.trace_id] = _hash(f"{span.trace_id}/turn/{span.data['message_id']}", 16)
            if len(self._turns) > _KNOWN_TURNS:
                self._turns.pop(next(iter(self._turns)))
        return self._turns.get(span.trace_id)

    def _attributes(self, span: TraceSpan) -> list[dict[str, object]]:
        exported = {
            _attribute_name(span, name): value
            for name, value in span.data.items()
            if name != "duration_ms" and value is not None and self._may_export(name, value)
        }
        return _make_attributes(exported)

    def _may_export(self, name: str, value: object) -> bool:
        if isinstance(value, int | float):
            return True
        return isinstance(value, str) and (self._content or name in _LABELS or name in _CONVENTIONS)


def _encode_span(span: TraceSpan, attributes: list[dict[str, object]]) -> dict[str, object]:
    operation = _OPERATIONS.get(span.event)
    subject = span.data.get("model") or span.data.get("tool") or span.data.get("agent_id")
    about = [_make_attribute("annabelle.event", span.event)]
    if operation is not None:
        about.append(_make_attribute("gen_ai.operation.name", operation))
    failed = any(span.data.get(name) for name in ("is_error", "code", "error")) or span.data.get("success") is False
    return {
        "name": f"{operation} {subject}" if operation is not None and subject else span.event,
        "kind": 3 if span.event == "model.called" else 1,
        "startTimeUnixNano": _to_nanoseconds(span.began),
        "endTimeUnixNano": _to_nanoseconds(span.ended),
        "attributes": [*about, *attributes],
        "status": {"code": 2} if failed else {},
    }


def _hash(text: str, length: int) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:length]


def _to_nanoseconds(moment: datetime) -> str:
    # A float is too imprecise for nanoseconds since 1970.
    return str((moment - _EPOCH) // timedelta(microseconds=1) * 1000)


def _attribute_name(span: TraceSpan, name: str) -> str:
    if name == "call_id" and "tool" in span.data:  # model calls have an id too, but no attribute for it
        return _TOOL_CALL
    return _CONVENTIONS.get(name, f"annabelle.{name}")


def _make_attributes(values: Mapping[str, object]) -> list[dict[str, object]]:
    return [_make_attribute(name, value) for name, value in values.items()]


def _make_attribute(name: str, value: object) -> dict[str, object]:
    if isinstance(value, bool):
        return {"key": name, "value": {"boolValue": value}}
    if isinstance(value, int):
        return {"key": name, "value": {"intValue": str(value)}}
    if isinstance(value, float):
        return {"key": name, "value": {"doubleValue": value}}
    return {"key": name, "value": {"stringValue": str(value)}}
