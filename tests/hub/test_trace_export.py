"""Traces of a running hub at an OpenTelemetry collector: the real protocol, over HTTP and into a file (TRC-02)."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from annabelle.core.errors import ConfigMistake
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.trace import TraceFile
from annabelle.hub.telemetry import trace_exporter
from annabelle.hub.telemetry.trace_exporter import TraceExporter, make_exporters
from hub.hubs import HubProcess, wait_for
from support.timing import seconds

pytestmark = pytest.mark.req("TRC-02")
Span = dict[str, object]
TRACE = "tr_01k00000000000000000000000"


class Collector(ThreadingHTTPServer):
    """Takes what an OTLP/HTTP collector takes. `status` is what it answers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receiver)
        self.status = 200
        self.bodies: list[dict[str, object]] = []
        self.headers: list[dict[str, str]] = []
        self.asked = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def spans(self) -> list[Span]:
        return [span for body in list(self.bodies) for span in spans_in(body)]


class _Receiver(BaseHTTPRequestHandler):
    server: Collector  # type: ignore[assignment]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked += 1
        if self.server.status == 200:
            assert (self.path, self.headers["Content-Type"]) == ("/v1/traces", "application/json")
            self.server.bodies.append(body)
            self.server.headers.append(dict(self.headers.items()))
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def running_collector() -> Iterator[Collector]:
    with Collector() as collector:
        thread = threading.Thread(target=collector.serve_forever, daemon=True)
        thread.start()
        yield collector
        collector.shutdown()
        thread.join(seconds(10))


@pytest.fixture
def collector() -> Iterator[Collector]:
    with running_collector() as made:
        yield made


def spans_in(body: dict[str, object]) -> Iterator[Span]:
    for resource in body["resourceSpans"]:  # type: ignore[attr-defined]
        ((service, name),) = [tuple(one.values()) for one in resource["resource"]["attributes"]]
        assert service == "service.name"
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                yield {**span, "service": name["stringValue"]}


def attributes(span: Span) -> dict[str, object]:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}  # type: ignore[attr-defined]


def named(spans: list[Span], event: str) -> list[Span]:
    return [span for span in spans if attributes(span)["annabelle.event"] == event]


PLAN = json.dumps(
    {
        "calls": [{"name": "filer_create_file", "arguments": {"path": "violet.md", "content": "a violet secret"}}],
        "say": "The violet answer.",
    }
)
SAID = f"Please create the file violet.md {PLAN}"


def test_a_turn_its_model_calls_and_its_tool_calls_are_spans_of_one_trace(
    make_hub: Callable[..., HubProcess], collector: Collector
) -> None:
    hub = make_hub(
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_EXPORTER_OTLP_HEADERS="x-team=home,authorization=Bearer abc"
    ).start()
    answer = hub.say(SAID)
    wait_for(lambda: named(collector.spans(), "message.delivered"), "the last span of the turn")
    spans = collector.spans()
    (turn,) = named(spans, "turn.finished")
    assert "parentSpanId" not in turn
    assert turn["name"] == "invoke_agent annabelle"
    told = attributes(turn)
    assert told["gen_ai.operation.name"] == "invoke_agent"
    assert told["gen_ai.agent.id"] == "annabelle"
    assert told["gen_ai.conversation.id"] == answer["threadId"]
    calls = named(spans, "model.called")
    assert len(calls) == 2
    for call in calls:
        assert (call["traceId"], call["parentSpanId"]) == (turn["traceId"], turn["spanId"])
        assert (call["name"], call["kind"], call["service"]) == ("chat scripted", 3, "annabelle-thinker")
        assert attributes(call)["gen_ai.request.model"] == "scripted"
        assert int(str(attributes(call)["gen_ai.usage.input_tokens"])) > 0
        assert int(str(turn["startTimeUnixNano"])) <= int(str(call["startTimeUnixNano"]))
        assert int(str(call["endTimeUnixNano"])) <= int(str(turn["endTimeUnixNano"]))
    (tool,) = [one for one in named(spans, "tool.finished") if "create" in str(one["name"])]
    assert tool["name"] == "execute_tool filer_create_file"
    assert tool["parentSpanId"] == turn["spanId"]
    assert attributes(tool)["gen_ai.tool.name"] == "filer_create_file"
    assert collector.headers[0]["x-team"] == "home"
    assert collector.headers[0]["authorization"] == "Bearer abc"
    exported = json.dumps(collector.bodies)
    assert "violet" not in exported, "nothing that was said, given or answered"
    assert len({span["spanId"] for span in spans}) == len(spans)


def test_content_goes_along_where_it_is_turned_on_and_secrets_never_do(
    make_hub: Callable[..., HubProcess], tmp_path: Path
) -> None:
    file = tmp_path / "spans.jsonl"
    key = "gsk_violetviolet0123456789violetviolet0123456789ab"
    hub = make_hub(OTEL_FILE=str(file), OTEL_CONTENT="true", GROQ_API_KEY=key).start()
    plan = {
        "calls": [{"name": "filer_create_file", "arguments": {"path": "violet.md", "content": f"with {key}"}}],
        "say": f"The violet answer with {key}.",
    }
    hub.say(f"Please create the file violet.md {json.dumps(plan)}")
    hub.stop()
    spans = [span for line in file.read_text().splitlines() for span in spans_in(json.loads(line))]
    (turn,) = named(spans, "turn.finished")
    told = attributes(turn)
    (said,) = json.loads(str(told["gen_ai.input.messages"]))
    assert said["role"] == "user"
    assert said["parts"][0]["content"].startswith("Please create the file violet.md")
    (tool,) = [span for span in spans if span["name"] == "execute_tool filer_create_file"]
    assert "violet.md" in str(attributes(tool)["gen_ai.tool.call.arguments"])
    assert key not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def make_exporter(traces: Path, **settings: object) -> TraceExporter:
    class Nothing:
        async def describe(self, _span: object) -> dict[str, object]:
            return {}

    (exporter,) = make_exporters(Settings.model_validate(settings), traces, redact=Redactor(), content=Nothing())
    return exporter


async def wait_until(look: Callable[[], object], what: str) -> None:
    await asyncio.to_thread(wait_for, look, what)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLL_SECONDS", "_RETRY_SECONDS", "_RETRY_CAP_SECONDS"):
        monkeypatch.setattr(trace_exporter, name, 0.01)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_what_could_not_be_sent_is_sent_later_and_the_trouble_is_logged_once(
    tmp_path: Path, collector: Collector, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    caplog.set_level("INFO")
    traces = TraceFile(tmp_path / "traces.jsonl", "hub", Redactor())
    exporter = make_exporter(tmp_path / "traces.jsonl", otel_exporter_otlp_endpoint=f"{collector.url}/v1/traces")
    collector.status = status
    await exporter.start()
    try:
        for number in range(3):
            traces.write("turn.started", {"message_id": f"msg_{number}"}, TRACE)
        await wait_until(lambda: collector.asked > 3, "several tries")
        collector.status = 200
        await wait_until(lambda: len(collector.spans()) == 3, "the spans")
    finally:
        await exporter.stop()
    assert exporter.dropped == 0
    assert [record.levelname for record in caplog.records if "can not be exported" in record.message] == ["WARNING"]


@pytest.mark.usefixtures("quick")
async def test_with_the_collector_down_a_bounded_number_is_kept_and_the_rest_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_exporter, "MOST_WAITING", 10)
    traces = TraceFile(tmp_path / "traces.jsonl", "hub", Redactor())
    exporter = make_exporter(tmp_path / "traces.jsonl", otel_exporter_otlp_endpoint="http://127.0.0.1:9")
    await exporter.start()
    for number in range(50):
        traces.write("turn.started", {"message_id": f"msg_{number}"}, TRACE)
    await wait_until(lambda: exporter.dropped == 40, "the count of what was dropped")
    await exporter.stop()


@pytest.mark.usefixtures("quick")
async def test_what_a_collector_refuses_for_good_is_not_sent_again(tmp_path: Path, collector: Collector) -> None:
    traces = TraceFile(tmp_path / "traces.jsonl", "hub", Redactor())
    exporter = make_exporter(tmp_path / "traces.jsonl", otel_exporter_otlp_endpoint=collector.url)
    collector.status = 400
    await exporter.start()
    traces.write("turn.started", {"message_id": "msg_1"}, TRACE)
    await wait_until(lambda: exporter.dropped == 1, "the refused span")
    collector.status = 200
    traces.write("turn.finished", {"message_id": "msg_1"}, TRACE)
    await wait_until(lambda: len(collector.spans()) == 1, "the next span")
    await exporter.stop()
    assert collector.asked == 2


@pytest.mark.usefixtures("quick")
async def test_nothing_is_lost_when_the_trace_file_is_rotated_and_garbage_in_it_is_passed_over(
    tmp_path: Path, collector: Collector
) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text('{"trace_id": "old", "event": "before the start"}\n')
    exporter = make_exporter(path, otel_exporter_otlp_endpoint=collector.url)
    await exporter.start()
    traces = TraceFile(path, "hub", Redactor(), max_bytes=2000)
    for number in range(40):
        traces.write("message.received", {"message_id": f"msg_{number}", "text": "content"}, TRACE)
        with path.open("ab") as file:
            file.write(b'\xff not json\n[1]\n{"trace_id": 7, "ts": []}\n')
        await asyncio.sleep(0.02)
    await wait_until(lambda: len(collector.spans()) >= 40, "all spans")
    await exporter.stop()
    ids = [attributes(span)["annabelle.message_id"] for span in collector.spans()]
    assert ids == [f"msg_{number}" for number in range(40)]
    assert "content" not in json.dumps(collector.bodies)


@pytest.mark.parametrize("headers", ["nonsense", "a", "=b,c", "x=ü"])
def test_headers_that_make_no_sense_are_named_at_the_start(tmp_path: Path, headers: str) -> None:
    with pytest.raises(ConfigMistake, match="OTEL_EXPORTER_OTLP_HEADERS"):
        make_exporter(
            tmp_path / "t", otel_exporter_otlp_endpoint="http://127.0.0.1:9", otel_exporter_otlp_headers=headers
        )
