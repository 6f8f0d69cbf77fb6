"""A thinker as a process: from warm spare to answer, and its ways to end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import httpx2 as httpx
import psutil
import pytest

from annabelle.core.contract import TOKEN_HEADER, AgentProfile
from annabelle.core.errors import ErrorBody
from annabelle.core.home import Home
from annabelle.core.trace import read_trace
from annabelle.thinker.app import make_app
from annabelle.thinker.assembly import Thinker as AgentThinker
from annabelle.thinker.boot import replace_environment
from support.scripted_model import Reply, Rule, ScriptedServer, plan_text
from support.timing import seconds
from support.warm_process import TEMPLATE
from thinker.fake_hub import FakeHub
from thinker.fakes import Bench, DictTools, ListedModel
from thinker.thinkers import SECRET, Thinker, brief, wait_for

Start = Callable[..., Thinker]
Spare = Callable[[], Thinker]
TESS = AgentProfile(agent_id="tess")


@pytest.mark.req("THK-01", "LLM-04", "TRC-01", "SEL-09")
def test_a_message_with_a_tool_call_is_answered(start: Start, hub: FakeHub, home: Home) -> None:
    thinker = start()
    asked = brief(plan_text([("look_up", {"text": "moon"})], say="It said {result}."))
    state = thinker.ask(asked)
    assert state.result is not None
    assert (state.state, state.result.text) == ("done", "It said did {'text': 'moon'}.")
    types = [event["event"]["type"] for event in thinker.events(asked.message_id)]
    assert [kind for kind in types if kind != "usage"] == ["tool_start", "tool_complete", "text"]
    assert hub.call_ids() == [f"{asked.message_id}:1:0"]
    assert hub.traces == {asked.trace_id}
    assert [call["call_id"] for call in hub.settled] == [call["call_id"] for call in hub.reserved]
    records = list(read_trace(home.traces_file, asked.trace_id))
    selected = next(record["data"] for record in records if record["event"] == "tools.selected")
    assert {"method", "selected", "total", "top_score", "cutoff", "top"} <= selected.keys()
    told = [record["event"] for record in records]
    steps = [event for event in told if not event.startswith("thinking.")]
    assert steps == [
        "loop.started",
        "tools.selected",
        "context.built",
        "model.called",
        "tool.returned",
        "model.called",
        "loop.finished",
    ]
    assert [event for event in told if event not in steps] == ["thinking.done", "thinking.done", "thinking.summary"]
    status = thinker.client.get("/cost-status").json()
    assert (status["paused"], status["calls"], status["input_tokens"]) == (False, 2, state.result.usage.input_tokens)


@pytest.mark.req("THK-02")
def test_it_acts_only_on_what_the_hub_sends(start: Start, hub: FakeHub, model: ScriptedServer) -> None:
    thinker = start()
    for _ in range(20):
        assert thinker.client.get("/health").status_code == 200
    assert (model.requests, hub.reserved, hub.calls) == ([], [], [])
    asked = brief("one")
    thinker.ask(asked)
    assert thinker.client.get("/health").status_code == 200
    assert len(model.requests) == 1
    assert {call["message_id"] for call in hub.reserved} == {asked.message_id}
    assert hub.calls == []


@pytest.mark.req("AGT-02")
async def test_until_it_is_ready_it_answers_503_and_again_once_it_closes(tmp_path: Path) -> None:
    deps = Bench(tmp_path, ListedModel("hi"), DictTools()).parts
    model = Mock(close=AsyncMock(), health=list)
    turns = Mock(stop=AsyncMock(), running_count=0)
    thinker = AgentThinker(deps, turns, Mock(), model, Mock(close=AsyncMock()))
    transport = httpx.ASGITransport(make_app(SECRET, thinker))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1:1", headers={TOKEN_HEADER: SECRET}
    ) as client:
        asked = {"content": brief("hello").model_dump_json()}
        for health, accepted in ((503, 503), (200, None), (503, 503)):
            assert (await client.get("/health")).status_code == health
            if accepted is not None:
                refused = await client.post("/process-message", **asked)
                assert (refused.status_code, refused.json()["error"]["code"]) == (accepted, "unavailable")
                assert not turns.accept.called, "nothing is taken that it cannot work on"
            await (thinker.close(0) if health == 200 else thinker.open())


@pytest.mark.req("THK-01")
def test_a_repeated_post_finds_the_same_turn(start: Start, hub: FakeHub, model: ScriptedServer) -> None:
    thinker = start()
    asked = brief(plan_text([("write_note", {"text": "once"})]))
    accepted = [thinker.client.post("/process-message", content=asked.model_dump_json()) for _ in range(5)]
    assert {reply.status_code for reply in accepted} == {202}
    assert thinker.state(asked.message_id).state == "done"
    again = thinker.client.post("/process-task", content=asked.model_dump_json())
    assert (again.status_code, again.json()["state"]) == (202, "done")
    assert len(hub.effects) == 1
    assert len(model.requests) == 2


@pytest.mark.req("THK-01")
def test_the_conversation_is_remembered_until_it_is_cleared(start: Start, model: ScriptedServer) -> None:
    thinker = start()
    thinker.ask(brief("I am Ada."))
    thinker.ask(brief("Who am I?"))
    assert "I am Ada." in json.dumps(model.requests[-1].body)
    assert thinker.client.post("/clear-session", json={"thread_id": "thr_one"}).status_code == 200
    thinker.ask(brief("And now?"))
    assert not [turn for turn in model.requests[-1].conversation.turns if turn.kind == "assistant"]
    thinker.ask(brief("Elsewhere", thread_id="thr_two"))
    assert "And now?" not in json.dumps(model.requests[-1].body)


@pytest.mark.req("LLM-04")
def test_text_is_streamed_while_the_model_speaks(start: Start, model: ScriptedServer) -> None:
    model.rules(Rule(reply=Reply(text="one two three four five six", chunks=6, chunk_delay=0.1, think="hm")))
    thinker = start()
    asked = brief("speak")
    thinker.client.post("/process-message", content=asked.model_dump_json())
    kinds, running = [], False
    with thinker.client.stream("GET", f"/turns/{asked.message_id}/events") as reply:
        for line in reply.iter_lines():
            event = json.loads(line)["event"]
            kinds.append((event["type"], bool(event["data"].get("final"))))
            if event["type"] == "text" and not running:
                running = thinker.state(asked.message_id, wait=0).state == "running"
    assert running
    assert kinds.count(("text", False)) > 2
    assert kinds[-2:] == [("text", True), ("usage", False)]
    assert ("think", False) in kinds


@pytest.mark.req("THK-05")
@pytest.mark.parametrize(
    "headers", [{}, {"X-Annabelle-Token": "wrong"}, {"X-Annabelle-Token": SECRET, "Host": "evil.example"}]
)
def test_every_endpoint_is_closed_to_everyone_but_the_hub(start: Start, headers: dict[str, str]) -> None:
    thinker = start()
    thinker.client.headers.pop("X-Annabelle-Token")
    for method, path in [
        ("GET", "/health"),
        ("POST", "/process-message"),
        ("POST", "/process-task"),
        ("GET", "/turns/x"),
        ("GET", "/turns/x/events"),
        ("POST", "/turns/x/cancel"),
        ("GET", "/cost-status"),
        ("POST", "/cost-resume"),
        ("POST", "/clear-session"),
        ("POST", "/extract-facts"),
        ("POST", "/tidy-facts"),
        ("GET", "/anything"),
    ]:
        reply = thinker.client.request(method, path, headers=headers)
        assert reply.status_code in (401, 403), path
        assert reply.json()["error"]["code"] in ("unauthorized", "not_allowed")


def test_bad_requests_are_named(start: Start) -> None:
    thinker = start()
    assert thinker.client.get("/turns/msg_none").status_code == 404
    assert thinker.client.get("/turns/msg_none/events").status_code == 404
    assert thinker.client.get("/turns/x?wait=long").json()["error"]["field"] == "wait"
    broken = thinker.client.post("/process-message", content=b"\xff{")
    assert (broken.status_code, broken.json()["error"]["code"]) == (422, "invalid_arguments")
    missing = thinker.client.post("/process-message", json={"message_id": "m"})
    assert missing.json()["error"]["field"] == "thread_id"


@pytest.mark.req("THK-04")
@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [("THINKER_TEMPERATURE", "9", "less than or equal to 2"), ("USER_TIMEZONE", "Mars", "no known time zone")],
)
def test_a_bad_setting_is_named_with_its_range_and_nothing_starts(
    spare: Spare, hub: FakeHub, settings: dict[str, str], setting: str, value: str, said: str
) -> None:
    thinker = spare()
    thinker.hand_over(hub.url, {**settings, setting: value}, TESS)
    error = json.loads(thinker.line())["error"]
    assert (error["code"], error["field"]) == ("bad_config", setting)
    assert said in error["message"]
    assert thinker.line() == ""
    thinker.wait_until_gone()


@pytest.mark.req("THK-04")
def test_the_exit_code_of_a_bad_boot_is_that_of_an_operators_mistake(home: Home) -> None:
    run = TEMPLATE.spawn("annabelle.thinker.__main__", dict(os.environ), stdin='{"port": 99999}\n')
    output, _ = run.communicate(seconds(60))
    assert run.returncode == 2
    assert json.loads(output)["error"]["code"] == "bad_config"


def test_a_spare_that_is_never_adopted_ends_quietly_when_its_input_does(home: Home) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "annabelle.thinker"], input=b"", capture_output=True, timeout=seconds(60)
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")


def test_a_spare_holds_no_open_database_and_listens_nowhere(spare: Spare, home: Home) -> None:
    thinker = spare()
    process = psutil.Process(thinker.pid)
    assert process.net_connections() == []
    assert not [file.path for file in process.open_files() if str(home.root) in file.path]


def test_an_adopted_thinker_has_what_it_was_given_and_no_secret_of_its_starter(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        monkeypatch.setenv(name, os.environ[name])  # so that all of it is put back
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "of-another-process")
    replace_environment({"GROQ_API_KEY": "its own", "ANNABELLE_HOME": "/given"})
    assert "TELEGRAM_BOT_TOKEN" not in os.environ
    assert (os.environ["GROQ_API_KEY"], os.environ["ANNABELLE_HOME"]) == ("its own", "/given")
    assert "PATH" in os.environ


@pytest.mark.req("TRC-03")
def test_the_log_names_the_agent_and_not_its_secret(start: Start, home: Home) -> None:
    start().ask(brief(f"my token is {SECRET}"))
    log = (home.logs / "thinker-tess.log").read_text()
    assert "ready: agent tess" in log
    assert SECRET not in log


@pytest.mark.req("THK-01")
def test_a_taken_port_is_no_trouble(spare: Spare, hub: FakeHub, settings: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        thinker = spare().adopt(hub.url, settings, TESS, port=port)
    assert thinker.port not in (0, port)
    assert thinker.ask(brief("hello")).state == "done"


@pytest.mark.incident("I-25")
def test_a_thinker_ends_when_its_hub_does(start: Start) -> None:
    thinker = start()
    thinker.close_input()
    thinker.wait_until_gone()


@pytest.mark.req("DUR-02")
def test_a_stop_lets_the_running_step_end_and_the_next_process_goes_on(
    start: Start, hub: FakeHub, model: ScriptedServer
) -> None:
    first = start()
    hub.delay = 0.4
    asked = brief(plan_text([("write_note", {"text": "a"}), ("write_note", {"text": "b"})], say="both"))
    first.client.post("/process-message", content=asked.model_dump_json())
    wait_for(lambda: hub.running)
    first.kill(signal.SIGTERM)
    first.wait_until_gone()
    asked_before = len(model.requests)
    assert asked_before == 1
    second = start()
    state = second.state(asked.message_id)
    assert state.result is not None
    assert state.result.text == "both"
    assert len(hub.calls) == len(hub.effects) == 2
    assert len(model.requests) == 3


@pytest.mark.incident("I-27")
def test_a_stopped_turn_stays_stopped_also_in_the_next_process(start: Start, model: ScriptedServer) -> None:
    model.rules(Rule(match="long", reply=Reply(text="never", hang=True)))
    first = start()
    asked = brief("a long one")
    first.client.post("/process-message", content=asked.model_dump_json())
    wait_for(lambda: model.requests)
    reply = first.client.post(f"/turns/{asked.message_id}/cancel").json()
    assert (reply["state"], reply["result"]["error"]["code"]) == ("failed", "cancelled")
    first.kill()
    first.wait_until_gone()
    state = start().state(asked.message_id)
    assert state.result is not None
    assert state.result.error is not None
    assert state.result.error.code == "cancelled"
    assert len(model.requests) == 1


@pytest.mark.req("THK-06")
def test_the_user_is_told_when_the_hub_is_away_and_the_turn_goes_on(
    start: Start, hub: FakeHub, model: ScriptedServer
) -> None:
    thinker = start()
    hub.refusals["write_note"] = (503, ErrorBody(code="unavailable", message="The hub is restarting."))
    asked = brief(plan_text([("write_note", {"text": "a"})], say="written"))
    thinker.client.post("/process-message", content=asked.model_dump_json())
    with thinker.client.stream("GET", f"/turns/{asked.message_id}/events") as reply:
        for line in reply.iter_lines():
            if json.loads(line)["event"]["type"] == "notice":
                hub.refusals.clear()
    assert thinker.state(asked.message_id).state == "done"
    assert len(hub.effects) == 1


def test_a_reader_that_comes_late_still_gets_the_facts(start: Start) -> None:
    first = start()
    asked = brief(plan_text([("look_up", {"text": "x"})], say="late"))
    first.ask(asked)
    known = {event["event"]["key"] for event in first.events(asked.message_id)}
    wait_for(lambda: first.client.get("/health").json()["turns"] == 0)
    first.kill(signal.SIGTERM)
    first.wait_until_gone()
    assert {event["event"]["key"] for event in start().events(asked.message_id)} == known


def test_a_damaged_turn_database_is_one_sentence_for_the_hub(
    spare: Spare, hub: FakeHub, settings: dict[str, str], home: Home
) -> None:
    folder = home.agent("tess")
    folder.mkdir(parents=True)
    (folder / "turns.db").write_bytes(b"this is not a database" * 1000)
    thinker = spare()
    thinker.hand_over(hub.url, settings, TESS)
    lines = [thinker.line(), thinker.line()]
    assert any('"storage_trouble"' in line for line in lines), lines
    thinker.wait_until_gone()


def test_two_processes_of_one_agent_are_refused(
    start: Start, spare: Spare, hub: FakeHub, settings: dict[str, str]
) -> None:
    start()
    second = spare()
    second.hand_over(hub.url, settings, TESS)
    lines = [second.line(), second.line()]
    assert any('"already_running"' in line for line in lines), lines
    second.wait_until_gone()
