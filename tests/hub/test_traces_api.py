"""`GET /traces`: the turns of late, and one of them step by step (TRC-04, CMP-06)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import httpx2 as httpx
import pytest

from annabelle.core.ids import new_id
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.tools import JsonObject
from annabelle.core.trace import TraceFile
from annabelle.hub.security.users_file import add_user
from hub.hubs import HubProcess, fresh_home, wait_for
from hub.traced_turn import ANSWER, ASKED, SETTINGS, THRESHOLD, compress_early, find_events, take_turn
from support.few_servers import only
from support.scripted_model import ScriptedServer


@pytest.fixture(scope="module")
def scanning_hub(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[HubProcess]:
    """A hub with a guardian, whose agent compresses early."""
    home = compress_early(fresh_home(tmp_path_factory.mktemp("traces")))
    hub = HubProcess(home, model.openai_url, **SETTINGS).start()
    yield hub
    hub.end()
    model.rules()


@pytest.fixture(scope="module")
def turn(scanning_hub: HubProcess, model: ScriptedServer) -> JsonObject:
    return take_turn(scanning_hub, model)


@pytest.fixture(scope="module")
def trace(scanning_hub: HubProcess, turn: JsonObject) -> JsonObject:
    return scanning_hub.http.get(f"/traces/{turn['traceId']}").json()


@pytest.mark.req("TRC-04", "UX-02")
def test_the_list_tells_what_each_turn_took(turn: JsonObject) -> None:
    assert str(turn["text"]).startswith("Please create the file violet.md")
    assert (turn["agentId"], turn["channel"], turn["state"], turn["modelCalls"]) == ("annabelle", "api", "done", 4)
    assert turn["answeredAt"] > turn["createdAt"]  # type: ignore[operator]
    assert turn["inputTokens"] > turn["outputTokens"] > 0  # type: ignore[operator]
    assert turn["unpriced"] == 4, "the scripted model is in no price table"


@pytest.mark.req("TRC-04", "UX-02")
def test_a_trace_has_prompts_tools_scans_tokens_and_what_was_said(trace: JsonObject) -> None:
    components = {one["component"] for one in trace["events"]}  # type: ignore[attr-defined]
    assert components == {"hub", "thinker"}
    offsets = [one["offsetMs"] for one in trace["events"]]  # type: ignore[attr-defined]
    assert offsets == sorted(offsets)
    assert offsets[0] == 0
    (layers,) = find_events(trace, "context.built")
    assert layers["data"]["tokens"]["persona"] > 0
    (chosen,) = find_events(trace, "tools.selected")
    assert chosen["data"]["offered"]["send_message"] == "core"
    assert chosen["data"]["offered"]["filer_create_file"] in ("in use", "learned", "fits")
    assert len(chosen["data"]["offered"]) == chosen["data"]["selected"]
    assert all(call["data"]["input_tokens"] > 0 for call in find_events(trace, "model.called"))
    assert {scan["data"]["direction"] for scan in find_events(trace, "content.scanned")} >= {"message", "output"}
    (asked,) = trace["messages"]  # type: ignore[misc]
    assert asked["text"] == ASKED
    (ended,) = find_events(trace, "turn.finished")
    assert ANSWER in ended["content"]["gen_ai.output.messages"]
    made = [call["content"] for call in find_events(trace, "tool.finished") if call["data"]["call_id"]]
    given = [json.loads(call["gen_ai.tool.call.arguments"]) for call in made]
    assert {"path": "violet.md"} in given
    assert any(call["data"]["error"] for call in find_events(trace, "tool.returned")), "the file that is not there"
    headings = {note["heading"] for note in trace["summary"]}  # type: ignore[attr-defined]
    assert {"Layers", "Tools", "Thinking", "Model", "Call", "Scan", "Total"} <= headings


@pytest.mark.req("CMP-06")
def test_a_trace_has_the_metrics_of_every_cycle_and_of_the_turn(trace: JsonObject) -> None:
    cycles = [one["data"] for one in find_events(trace, "thinking.done")]
    assert [cycle["step"] for cycle in cycles] == [1, 2, 3, 4]
    fields = {"tokens_before", "tokens_after", "ratio", "overhead_tokens", "strategy", "duration_ms", "calls"}
    assert all(fields <= cycle.keys() for cycle in cycles)
    assert all(
        cycle["ratio"] == pytest.approx(cycle["tokens_after"] / cycle["tokens_before"], abs=1e-3) for cycle in cycles
    )
    assert (cycles[0]["strategy"], cycles[0]["ratio"]) == ("none", 1.0)
    assert cycles[-1]["tokens_before"] > THRESHOLD
    assert cycles[-1]["ratio"] < 1
    assert cycles[-1]["strategy"] == "adaptive"
    (whole,) = [one["data"] for one in find_events(trace, "thinking.summary")]
    assert (whole["success"], whole["cycles"]) == (True, 4)
    assert {"recoveries", "context_losses", "thinking_ms"} <= whole.keys()
    assert whole["tokens_before"] == sum(cycle["tokens_before"] for cycle in cycles)


@pytest.mark.req("TRC-04")
def test_older_turns_come_with_a_position(scanning_hub: HubProcess, turn: JsonObject) -> None:
    scanning_hub.say("Hello")
    (newest,) = scanning_hub.http.get("/traces", params={"limit": 1}).json()["turns"]
    assert newest["text"] == "Hello"
    older = scanning_hub.http.get("/traces", params={"before": newest["position"]}).json()["turns"]
    assert [one["traceId"] for one in older] == [turn["traceId"]]


@pytest.mark.req("TRC-04")
def test_traces_are_the_owners_and_somebody_elses_turn_is_not_there(make_hub: Callable[..., HubProcess]) -> None:
    hub = make_hub(**only()).start()
    headers = {"X-Annabelle-Token": add_user(hub.home.users_file, "ada")}
    wait_for(lambda: hub.http.get("/threads", headers=headers).is_success, "the token of a new person")
    said = hub.http.post("/message", params={"wait": 60}, json={"text": "my secret"}, headers=headers).json()
    (message, *_) = hub.http.get(f"/threads/{said['threadId']}/messages", headers=headers).json()["messages"]
    for path in ("/traces", f"/traces/{message['traceId']}"):
        assert hub.http.get(path, headers=headers).status_code == 403
        assert httpx.get(f"{hub.url}{path}").status_code == 401
    assert hub.http.get("/traces").json() == {"turns": []}
    assert hub.http.get(f"/traces/{message['traceId']}").status_code == 404


@pytest.mark.req("TRC-04")
def test_a_trace_without_a_message_is_shown_and_secrets_and_unknown_ids_are_not(
    make_hub: Callable[..., HubProcess],
) -> None:
    key = "violet-lantern-harbour-orchid"  # no form of its own: only the hub knows that it is a secret
    hub = make_hub(GROQ_API_KEY=key, **only()).start()
    trace_id = new_id("tr")
    traces = TraceFile(hub.home.traces_file, "thinker", Redactor())
    traces.write("model.called", {"model": key, "input_tokens": 7, "cost_usd": 0.5, "duration_ms": 3.0}, trace_id)
    assert key in hub.home.traces_file.read_text()
    found = hub.http.get(f"/traces/{trace_id}")
    assert key not in found.text
    (event,) = found.json()["events"]
    assert (event["component"], event["durationMs"], event["data"]["input_tokens"]) == ("thinker", 3.0, 7)
    assert found.json()["summary"][-1] == {"heading": "Total", "text": "1 model call, 7 tokens, $0.500000"}
    for unknown in (new_id("tr"), "nonsense", "tr_%2e%2e"):
        assert hub.http.get(f"/traces/{unknown}").status_code in (404, 422)
