"""A trace as spans: when each began, in which order, and in OpenTelemetry's words (TRC-02)."""

from __future__ import annotations

import re
from typing import cast

import pytest
from hypothesis import given, strategies as st

from annabelle.core.trace_export import parse_spans, to_otlp

TRACE = "tr_01k00000000000000000000000"


def record(
    event: str, ts: str = "2026-01-01T00:00:01+00:00", component: str = "hub", **data: object
) -> dict[str, object]:
    return {"trace_id": TRACE, "ts": ts, "mcp": component, "event": event, "data": data}


def exported(*records: dict[str, object]) -> list[dict[str, object]]:
    """The spans of an export, over all components."""
    resources = cast("list[dict[str, list[dict[str, list[dict[str, object]]]]]]", _resources(*records))
    return [span for resource in resources for scope in resource["scopeSpans"] for span in scope["spans"]]


def _resources(*records: dict[str, object]) -> object:
    return to_otlp(TRACE, parse_spans(records))["resourceSpans"]


def attributes(span: dict[str, object]) -> dict[str, object]:
    """Names and values; each value must have exactly one type."""
    found: dict[str, object] = {}
    for attribute in cast("list[dict[str, object]]", span["attributes"]):
        ((kind, value),) = cast("dict[str, object]", attribute["value"]).items()
        found[str(attribute["key"])] = int(cast("str", value)) if kind == "intValue" else value
    return found


def test_what_has_a_duration_began_that_much_earlier():
    (span,) = parse_spans([record("model.called", duration_ms=250)])
    assert (span.ended - span.began).total_seconds() == 0.25
    assert span.ended.isoformat() == "2026-01-01T00:00:01+00:00"


def test_what_has_no_duration_is_a_moment():
    (span,) = parse_spans([record("turn.started")])
    assert span.began == span.ended


def test_spans_come_in_the_order_they_began_and_the_longer_one_first():
    spans = parse_spans(
        [
            record("tool.called", "2026-01-01T00:00:00.900+00:00"),
            record("loop.finished", "2026-01-01T00:00:02+00:00", duration_ms=1900),
            record("message.received", "2026-01-01T00:00:00+00:00"),
            record("loop.started", "2026-01-01T00:00:00.100+00:00"),
        ]
    )
    assert [span.event for span in spans] == ["message.received", "loop.finished", "loop.started", "tool.called"]


@pytest.mark.parametrize("ts", [None, "", "yesterday", 7])
def test_a_line_without_a_time_is_passed_over(ts: object):
    assert parse_spans([{**record("x"), "ts": ts}]) == []


@pytest.mark.parametrize("duration", [float("nan"), float("inf"), 1e300, -1e300])
def test_a_length_that_can_not_be_is_passed_over(duration: float):
    assert parse_spans([record("x", duration_ms=duration)]) == []


def test_a_time_without_a_zone_is_utc():
    spans = parse_spans([record("b", "2026-01-01T00:00:02"), record("a", "2026-01-01T01:00:01+01:00")])
    assert [span.event for span in spans] == ["a", "b"]


def test_a_line_without_data_is_still_a_span():
    (span,) = parse_spans([{"ts": "2026-01-01T00:00:01+00:00", "data": "odd"}])
    assert (span.component, span.event, dict(span.data)) == ("", "", {})


@pytest.mark.req("TRC-02")
def test_a_model_call_is_told_in_the_words_of_the_genai_conventions():
    (span,) = exported(
        record(
            "model.called", component="thinker", call_id="msg_1:0:m0", provider="groq", model="llama", input_tokens=11,
            output_tokens=7, cached_tokens=3, cost_usd=0.5, duration_ms=250,
        )
    )  # fmt: skip
    assert (span["name"], span["kind"]) == ("chat llama", 3)
    assert attributes(span) == {
        "annabelle.event": "model.called",
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "groq",
        "gen_ai.request.model": "llama",
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "annabelle.cost_usd": 0.5,
        "annabelle.call_id": "msg_1:0:m0",
    }
    assert int(str(span["endTimeUnixNano"])) - int(str(span["startTimeUnixNano"])) == 250_000_000


@pytest.mark.req("TRC-02")
@pytest.mark.parametrize("event", ["tool.finished", "tool.failed"])
def test_a_tool_call_is_told_in_the_words_of_the_genai_conventions(event: str):
    (span,) = exported(record(event, tool="filer_read_file", call_id="msg_1:0:0"))
    assert (span["name"], span["kind"]) == ("execute_tool filer_read_file", 1)
    told = attributes(span)
    assert told["gen_ai.tool.name"] == "filer_read_file"
    assert told["gen_ai.tool.call.id"] == "msg_1:0:0"


def test_what_the_conventions_do_not_know_keeps_its_name():
    (span,) = exported(record("message.received", channel="cli", message_id="msg_1"))
    assert span["name"] == "message.received"
    assert attributes(span) == {
        "annabelle.event": "message.received",
        "annabelle.channel": "cli",
        "annabelle.message_id": "msg_1",
    }


@pytest.mark.req("TRC-02")
@pytest.mark.parametrize(
    ("data", "failed"),
    [
        ({"tool": "t", "is_error": True}, True),
        ({"tool": "t", "code": "server_down"}, True),
        ({"tool": "t", "error": "timeout"}, True),
        ({"success": False}, True),
        ({"tool": "t", "is_error": False}, False),
        ({"tool": "t", "error": None}, False),
        ({"success": True}, False),
        ({}, False),
    ],
)
def test_what_failed_has_the_status_of_an_error(data: dict[str, object], failed: bool):
    (span,) = exported(record("tool.finished", **data))
    assert span["status"] == ({"code": 2} if failed else {})


@pytest.mark.parametrize("name", ["code", "error"])
def test_the_code_of_a_failure_is_its_error_type(name: str):
    (span,) = exported(record("tool.failed", tool="t", **{name: "server_down"}))
    assert attributes(span)["error.type"] == "server_down"


@pytest.mark.req("TRC-02")
@given(events=st.lists(st.sampled_from(["turn.started", "model.called", "tool.finished"]), min_size=1, max_size=20))
def test_ids_are_stable_hexadecimal_and_of_the_right_length(events: list[str]):
    records = [record(event, component=component) for event in events for component in ("hub", "thinker")]
    spans = exported(*records)
    assert spans == exported(*records)
    assert {re.fullmatch("[0-9a-f]{32}", str(span["traceId"])) is not None for span in spans} == {True}
    assert len({span["traceId"] for span in spans}) == 1
    assert {re.fullmatch("[0-9a-f]{16}", str(span["spanId"])) is not None for span in spans} == {True}
    assert len({span["spanId"] for span in spans}) == len(records)


@pytest.mark.req("TRC-02")
def test_each_component_is_a_service_of_its_own():
    found = cast("list[dict[str, dict[str, list[object]]]]", _resources(record("a"), record("b", component="thinker")))
    assert [resource["resource"]["attributes"] for resource in found] == [
        [{"key": "service.name", "value": {"stringValue": name}}] for name in ("annabelle-hub", "annabelle-thinker")
    ]


def test_a_truth_is_not_told_as_a_number():
    (span,) = exported(record("turn.finished", success=True))
    assert attributes(span)["annabelle.success"] is True
