"""`annabelle trace`: a turn as a waterfall."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from annabelle.cli.trace import BAR_WIDTH, print_waterfall, render_bar
from annabelle.core.home import Home
from annabelle.core.ids import new_id
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.trace import TraceFile
from annabelle.core.trace_export import parse_spans
from cli.terminal import environment, run


@given(begin=st.floats(0, 1), length=st.floats(0, 1))
def test_a_bar_is_always_visible_and_never_wider_than_its_place(begin: float, length: float):
    drawn = render_bar(begin, length)
    assert len(drawn) == BAR_WIDTH
    assert "█" in drawn


@pytest.mark.req("TRC-04")
def test_a_bar_begins_and_ends_where_its_event_did(capsys: pytest.CaptureFixture[str]):
    records = [
        {"ts": f"2026-11-18T09:00:00.{ended:03}+00:00", "event": event, "data": {"duration_ms": took}}
        for event, ended, took in (("first", 140, 140), ("whole", 280, 280), ("last", 280, 69))
    ]
    print_waterfall("tr_1", parse_spans(records))
    drawn = [line[11 : 11 + BAR_WIDTH] for line in capsys.readouterr().out.splitlines()[:3]]
    assert drawn == ["█" * 28, "█" * 14 + " " * 14, " " * 21 + "█" * 7]


@pytest.mark.req("TRC-04")
def test_the_events_of_one_trace_are_drawn_in_order_and_no_others(home: Home):
    trace_id, other = new_id("tr"), new_id("tr")
    for component, event, mine in (
        ("hub", "received", True),
        ("thinker", "model.called", True),
        ("hub", "else", False),
    ):
        data = {"duration_ms": 12.5, "tokens": 7, "text": "a\x1b[31mb"}
        TraceFile(home.traces_file, component, Redactor()).write(event, data, trace_id if mine else other)
    shown = run(environment(home), "trace", trace_id)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert ["received" in lines[0], "model.called" in lines[1], "2 events" in lines[2]] == [True, True, True]
    assert "tokens=7" in lines[1]
    assert "\x1b" not in shown.stdout
    assert len(json.loads(run(environment(home), "trace", trace_id, "--json").stdout)["events"]) == 2


@pytest.mark.req("TRC-02")
def test_a_trace_is_exported_as_a_collector_takes_it(home: Home):
    trace_id = new_id("tr")
    traces = TraceFile(home.traces_file, "thinker", Redactor())
    traces.write("model.called", {"model": "m", "provider": "p", "input_tokens": 7, "duration_ms": 12.5}, trace_id)
    shown = run(environment(home), "trace", trace_id, "--otlp")
    assert shown.returncode == 0, shown.stderr
    (resource,) = json.loads(shown.stdout)["resourceSpans"]
    (span,) = resource["scopeSpans"][0]["spans"]
    assert span["name"] == "chat m"
    assert {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "7"}} in span["attributes"]


@pytest.mark.req("TRC-04")
def test_without_an_id_the_last_turn_is_shown(home: Home):
    nothing = run(environment(home), "trace")
    assert (nothing.returncode, "annabelle ask" in nothing.stderr) == (2, True)
    first, last, call = new_id("tr"), new_id("tr"), new_id("tr")
    traces = TraceFile(home.traces_file, "hub", Redactor())
    for event, trace_id in (("message.received", first), ("message.received", last), ("tool.called", call)):
        traces.write(event, {}, trace_id)
    shown = run(environment(home), "trace")
    assert shown.returncode == 0, shown.stderr
    assert last in shown.stdout.splitlines()[-1]


@pytest.mark.parametrize("trace_id", ["nonsense", "tr_" + "0" * 26])
def test_a_trace_nobody_recorded_is_named(home: Home, trace_id: str):
    refused = run(environment(home), "trace", trace_id)
    assert refused.returncode == 2
    assert trace_id in refused.stderr


@pytest.mark.req("TRC-04", "SEL-09", "CMP-06")
def test_what_a_turn_was_made_of_is_told_below_the_waterfall(home: Home):
    trace_id = new_id("tr")
    traces = TraceFile(home.traces_file, "thinker", Redactor())
    chosen = {"method": "hybrid", "selected": 7, "total": 139, "cutoff": 0.31, "top": [["filer_list_files", 0.81]]}
    for event, data in (
        ("context.built", {"tokens": {"persona": 410}, "history_messages": 6, "left_out": {"memories": 2}}),
        ("tools.selected", chosen),
        ("thinking.done", {"tokens_before": 14_000, "tokens_after": 7_000, "strategy": "adaptive", "duration_ms": 3}),
        ("model.called", {"provider": "p", "model": "m", "input_tokens": 900, "output_tokens": 100, "cost_usd": 0.002}),
        ("model.called", {"provider": "p", "model": "m", "input_tokens": 500, "cached_tokens": 400, "cost_usd": 0.001}),
        (
            "model.called_aside",
            {"purpose": "thinking", "provider": "p", "model": "s", "input_tokens": 50, "cost_usd": 0.001},
        ),
        ("tool.returned", {"tool": "filer_list_files", "error": None, "duration_ms": 2.5}),
        ("call.judged", {"tool": "gmail_send_email", "verdict": "allow", "order": ["send bob the list"]}),
        (
            "content.scanned",
            {"tool": "web_read_page", "direction": "output", "verdict": "high", "threats": ["jailbreak"]},
        ),
    ):
        traces.write(event, data, trace_id)
    shown = run(environment(home), "trace", trace_id)
    assert shown.returncode == 0, shown.stderr
    told = dict(line.split(maxsplit=1) for line in shown.stdout.partition("In this turn")[2].splitlines() if line)
    assert told["Layers"] == "persona 410 tokens; 6 messages of history; left out: 2 of memories"
    assert told["Tools"] == "7 of 139 by hybrid, cut at 0.31: filer_list_files 0.81"
    assert told["Thinking"] == "14,000 → 7,000 tokens, adaptive, 3.0 ms"
    assert told["Call"] == "filer_list_files, ok, 2.5 ms"
    assert told["Policy"] == "gmail_send_email, allow, ordered by “send bob the list”"
    assert told["Scan"] == "web_read_page (output), risk high: jailbreak"
    assert told["Aside"] == "thinking: p/s, 50 + 0 tokens, $0.001000"
    assert told["Total"] == "3 model calls, 1,550 tokens, $0.004000"
