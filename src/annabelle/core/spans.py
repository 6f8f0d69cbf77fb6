"""What the trace file says of one trace, as spans: for the terminal's waterfall and for OpenTelemetry (TRC-02).

What has a duration is recorded when it ends, so it began that much earlier; everything else is a moment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

_OPERATIONS = {"model.called": "chat", "tool.finished": "execute_tool", "turn.finished": "invoke_agent"}
# Our field names, and what the GenAI conventions of OpenTelemetry call them.
_CONVENTIONS = {
    "provider": "gen_ai.provider.name",
    "model": "gen_ai.request.model",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "tool": "gen_ai.tool.name",
    "call_id": "gen_ai.tool.call.id",
    "agent_id": "gen_ai.agent.id",
    "thread_id": "gen_ai.conversation.id",
    "code": "error.type",
}


@dataclass(frozen=True, slots=True)
class Span:
    """One recorded event of one component."""

    began: datetime
    ended: datetime
    component: str
    event: str
    data: Mapping[str, object]


def parse_spans(records: Iterable[Mapping[str, object]]) -> list[Span]:
    """The spans of these lines of the trace file, in the order they began; lines without a time are passed over."""
    spans = [span for record in records if (span := _parse(record)) is not None]
    return sorted(spans, key=lambda span: (span.began, -span.ended.timestamp()))


def _parse(record: Mapping[str, object]) -> Span | None:
    try:
        ended = datetime.fromisoformat(str(record.get("ts")))
    except ValueError:
        return None
    found = record.get("data")
    data = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    duration = data.get("duration_ms")
    length = timedelta(milliseconds=duration) if isinstance(duration, int | float) else timedelta()
    return Span(ended - length, ended, str(record.get("mcp", "")), str(record.get("event", "")), data)


def to_otlp(trace_id: str, spans: Iterable[Span]) -> dict[str, object]:
    """One trace in OTLP's JSON form, one resource per component, ready for any collector's HTTP endpoint."""
    by_component: dict[str, list[dict[str, object]]] = {}
    for number, span in enumerate(spans):
        by_component.setdefault(span.component, []).append(_otlp_span(trace_id, number, span))
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [_attribute("service.name", f"annabelle-{component}")]},
                "scopeSpans": [{"scope": {"name": "annabelle"}, "spans": found}],
            }
            for component, found in by_component.items()
        ]
    }


def _otlp_span(trace_id: str, number: int, span: Span) -> dict[str, object]:
    operation = _OPERATIONS.get(span.event)
    subject = span.data.get("model") or span.data.get("tool") or span.data.get("agent_id")
    attributes = [_attribute("annabelle.event", span.event)]
    if operation is not None:
        attributes.append(_attribute("gen_ai.operation.name", operation))
    attributes += [
        _attribute(_CONVENTIONS.get(name, f"annabelle.{name}"), value)
        for name, value in span.data.items()
        if name != "duration_ms" and isinstance(value, str | int | float)
    ]
    failed = bool(span.data.get("is_error") or span.data.get("code")) or span.data.get("success") is False
    return {
        "traceId": hashlib.sha256(trace_id.encode()).hexdigest()[:32],
        "spanId": hashlib.sha256(f"{trace_id}/{number}".encode()).hexdigest()[:16],
        "name": f"{operation} {subject}" if operation is not None and subject else span.event,
        "kind": 3 if span.event == "model.called" else 1,
        "startTimeUnixNano": str(int(span.began.timestamp() * 1e9)),
        "endTimeUnixNano": str(int(span.ended.timestamp() * 1e9)),
        "attributes": attributes,
        "status": {"code": 2} if failed else {},
    }


def _attribute(name: str, value: object) -> dict[str, object]:
    if isinstance(value, bool):
        return {"key": name, "value": {"boolValue": value}}
    if isinstance(value, int):
        return {"key": name, "value": {"intValue": str(value)}}
    if isinstance(value, float):
        return {"key": name, "value": {"doubleValue": value}}
    return {"key": name, "value": {"stringValue": str(value)}}
