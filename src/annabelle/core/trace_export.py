"""Converts a trace to spans (TRC-02). Events with a duration are recorded when they end."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
_TOOL_CALL = "gen_ai.tool.call.id"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TraceSpan:
    began: datetime
    ended: datetime
    component: str
    event: str
    data: Mapping[str, object]


def parse_spans(records: Iterable[Mapping[str, object]]) -> list[TraceSpan]:
    """Parses lines of the trace file into spans, in order of their start; skips lines without a time."""
    spans = [span for record in records if (span := _parse_span(record)) is not None]
    return sorted(spans, key=lambda span: (span.began, -span.ended.timestamp()))


def _parse_span(record: Mapping[str, object]) -> TraceSpan | None:
    found = record.get("data")
    data = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    duration = data.get("duration_ms")
    try:
        ended = datetime.fromisoformat(str(record.get("ts")))
        ended = ended if ended.tzinfo is not None else ended.replace(tzinfo=UTC)
        began = ended - timedelta(milliseconds=duration if isinstance(duration, int | float) else 0)
    except (ValueError, OverflowError):
        return None
    return TraceSpan(began, ended, str(record.get("mcp", "")), str(record.get("event", "")), data)


def to_otlp(trace_id: str, spans: Iterable[TraceSpan]) -> dict[str, object]:
    """Exports one trace as OTLP JSON, one resource per component, for any collector's HTTP endpoint."""
    by_component: dict[str, list[dict[str, object]]] = {}
    for number, span in enumerate(spans):
        by_component.setdefault(span.component, []).append(_otlp_span(trace_id, number, span))
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [_make_attribute("service.name", f"annabelle-{component}")]},
                "scopeSpans": [{"scope": {"name": "annabelle"}, "spans": found}],
            }
            for component, found in by_component.items()
        ]
    }


def _otlp_span(trace_id: str, number: int, span: TraceSpan) -> dict[str, object]:
    operation = _OPERATIONS.get(span.event)
    subject = span.data.get("model") or span.data.get("tool") or span.data.get("agent_id")
    attributes = [_make_attribute("annabelle.event", span.event)]
    if operation is not None:
        attributes.append(_make_attribute("gen_ai.operation.name", operation))
    attributes += [
        _make_attribute(_attribute_name(span, name), value)
        for name, value in span.data.items()
        if name != "duration_ms" and isinstance(value, str | int | float)
    ]
    failed = any(span.data.get(name) for name in ("is_error", "code", "error")) or span.data.get("success") is False
    return {
        "traceId": hashlib.sha256(trace_id.encode()).hexdigest()[:32],
        "spanId": hashlib.sha256(f"{trace_id}/{number}".encode()).hexdigest()[:16],
        "name": f"{operation} {subject}" if operation is not None and subject else span.event,
        "kind": 3 if span.event == "model.called" else 1,
        "startTimeUnixNano": _to_nanoseconds(span.began),
        "endTimeUnixNano": _to_nanoseconds(span.ended),
        "attributes": attributes,
        "status": {"code": 2} if failed else {},
    }


def _to_nanoseconds(moment: datetime) -> str:
    # A float is too imprecise for nanoseconds since 1970.
    return str((moment - _EPOCH) // timedelta(microseconds=1) * 1000)


def _attribute_name(span: TraceSpan, name: str) -> str:
    if name == "call_id" and "tool" in span.data:  # model calls have an id too, but no attribute for it
        return _TOOL_CALL
    return _CONVENTIONS.get(name, f"annabelle.{name}")


def _make_attribute(name: str, value: object) -> dict[str, object]:
    if isinstance(value, bool):
        return {"key": name, "value": {"boolValue": value}}
    if isinstance(value, int):
        return {"key": name, "value": {"intValue": str(value)}}
    if isinstance(value, float):
        return {"key": name, "value": {"doubleValue": value}}
    return {"key": name, "value": {"stringValue": str(value)}}
