"""Starting, stopping and dying: one clear sentence, nothing lost, nobody left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2 as httpx
import psutil
import pytest

from annabelle.core.home import Home
from annabelle.hub.failpoints import FAILPOINTS
from hub.hubs import HubProcess, wait_for
from support.few_servers import only
from support.scripted_model import Reply, Rule, ScriptedServer
from support.timing import seconds

MakeHub = Callable[..., HubProcess]
SLOW = "take your time"


@pytest.fixture
def slow(model: ScriptedServer) -> Iterator[ScriptedServer]:
    """A model that answers one kind of message slowly."""
    model.clear()
    model.rules(Rule(match=SLOW, reply=Reply(text="worth the wait", chunks=8, chunk_delay=0.3)))
    yield model
    model.rules()


def refused(hub: HubProcess) -> tuple[int, str]:
    """The exit code and words of a hub that does not start."""
    process = hub.spawn()
    try:
        _, words = process.communicate(timeout=seconds(60))
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, words


@pytest.mark.req("HUB-05")
def test_a_second_hub_on_one_home_is_refused_with_the_first_one_s_whereabouts(shared_hub: HubProcess) -> None:
    first = shared_hub
    code, words = refused(HubProcess(first.home))
    assert code == 4
    assert str(first.pid) in words
    assert first.url in words
    assert len(words.strip().splitlines()) == 1
    assert first.http.get("/health").status_code == 200


def test_a_taken_port_is_one_clear_sentence(make_hub: MakeHub) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, words = refused(make_hub(ANNABELLE_PORT=str(port)))
    assert code == 2
    assert f"Port {port}" in words
    assert len(words.strip().splitlines()) == 1


def test_a_home_that_can_not_be_written_is_one_clear_sentence(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    code, words = refused(HubProcess(Home(blocker / "home")))
    assert code == 2
    assert "can not be written" in words
    assert len(words.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("settings", "says"),
    [({"ANNABELLE_PORT": "high"}, "ANNABELLE_PORT"), ({"DATABASE_URL": "mysql://x"}, "DATABASE_URL")],
)
def test_a_bad_setting_is_named_and_nothing_starts(make_hub: MakeHub, settings: dict[str, str], says: str) -> None:
    code, words = refused(make_hub(**settings))
    assert code == 2
    assert says in words
    assert len(words.strip().splitlines()) == 1


@pytest.mark.req("AGT-01")
def test_a_bad_agents_file_at_the_first_start_is_refused_with_its_line(make_hub: MakeHub, home: Home) -> None:
    home.agents_file.write_text('{"agents": [\n  {"agentId": }\n]}')
    code, words = refused(make_hub())
    assert code == 2
    assert "agents.json, line 2" in words


def test_a_corrupt_database_is_one_clear_sentence_and_kept(make_hub: MakeHub, home: Home) -> None:
    home.data.mkdir(exist_ok=True)
    home.database_file.write_bytes(b"this is no database at all" * 100)
    code, words = refused(make_hub())
    assert code == 3
    assert "damaged" in words
    assert home.database_file.read_bytes().startswith(b"this is no database")


@pytest.mark.req("HUB-07", "API-01")
def test_the_first_start_makes_the_home(make_hub: MakeHub, home: Home) -> None:
    home.agents_file.write_text(json.dumps({"agents": [{"agentId": "annabelle"}, {"agentId": "second"}]}))
    hub = make_hub(**only()).start()
    assert stat.S_IMODE(home.token_file.stat().st_mode) == 0o600
    for agent_id in ("annabelle", "second"):
        assert (home.agent(agent_id) / "instructions.md").exists()
    assert home.skills.is_dir()
    assert (home.root / "README.md").exists()
    assert len(list(home.playbooks.glob("*.md"))) == 15
    wait_for(lambda: len(hub.http.get("/skills").json()["skills"]) == 12, "the default skills")
    assert hub.about["version"] == "0.1.0"
    assert hub.stop() == 0
    assert not home.hub_file.exists()


@pytest.mark.req("EXT-04")
def test_the_start_up_notification_names_the_servers_that_came_and_went(make_hub: MakeHub) -> None:
    def told(hub: HubProcess) -> list[str]:
        notices = hub.start().http.get("/status").json()["notices"]
        assert hub.stop() == 0
        return [notice["text"] for notice in notices if notice["topic"] == "startup"]

    assert len(told(make_hub(**only("filer")))) == 1
    (without,) = told(make_hub(**only()))
    assert without.endswith(" Servers that are gone: filer.")
    (again,) = told(make_hub(**only("filer")))
    assert again.endswith(" New servers: filer.")


@pytest.mark.req("HUB-05")
@pytest.mark.incident("I-25")
def test_a_stop_leaves_no_process_and_a_kill_neither(make_hub: MakeHub) -> None:
    hub = make_hub(THINKER_WARM_SPARE="true").start()
    hub.say("hello")
    wait_for(lambda: hub.http.get("/status").json()["warmSpare"], "a warm spare")
    family = hub.children()
    assert sorted(one.name() for one in hub.thinkers()) == ["thinker-annabel", "thinker-spare"]
    assert hub.stop() == 0
    assert psutil.wait_procs(family, timeout=seconds(5))[1] == []
    hub.start()
    hub.say("hello")
    family = hub.children()
    hub.kill()
    assert psutil.wait_procs(family, timeout=seconds(10))[1] == []


@pytest.mark.req("HUB-05", "DUR-01")
def test_a_stop_in_the_middle_of_a_turn_waits_for_it(make_hub: MakeHub, slow: ScriptedServer) -> None:
    hub = make_hub(**only()).start()
    message_id = hub.http.post("/message", json={"text": SLOW}).json()["messageId"]
    wait_for(lambda: slow.requests, "the model to be asked")
    hub.signal(signal.SIGTERM)
    wait_for(lambda: hub.http.get("/health").json()["phase"] == "stopping", "the hub to stop")
    late = hub.http.post("/message", json={"text": "too late"})
    assert late.status_code == 503
    assert "shutting down" in late.json()["error"]["message"]
    assert hub.wait() == 0
    hub.start()
    found = hub.http.get(f"/messages/{message_id}").json()
    assert (found["state"], found["reply"]["text"]) == ("done", "worth the wait")
    assert len(slow.requests) == 1


@pytest.mark.req("HUB-05", "DUR-01")
def test_a_turn_that_is_cut_off_by_a_stop_is_finished_by_the_next_start(
    make_hub: MakeHub, slow: ScriptedServer
) -> None:
    hub = make_hub(ANNABELLE_SHUTDOWN_GRACE_SECONDS="0", **only()).start()
    message_id = hub.http.post("/message", json={"text": SLOW}).json()["messageId"]
    queued = hub.http.post("/message", json={"text": "and this"}).json()["messageId"]
    wait_for(lambda: slow.requests, "the model to be asked")
    assert hub.stop() == 0
    hub.start()
    found = hub.http.get(f"/messages/{message_id}", params={"wait": seconds(60)}).json()
    assert (found["state"], found["reply"]["text"]) == ("done", "worth the wait")
    assert hub.http.get(f"/messages/{queued}", params={"wait": seconds(60)}).json()["state"] == "done"
    listed = hub.http.get(f"/threads/{found['threadId']}/messages").json()["messages"]
    assert [line["source"] for line in listed if line["type"] == "text" and line["source"] != "user"] == ["agent"] * 2


@pytest.mark.req("HUB-05")
def test_a_second_signal_hurries(make_hub: MakeHub, slow: ScriptedServer) -> None:
    slow.rules(Rule(match=SLOW, reply=Reply(hang=True)))
    hub = make_hub(ANNABELLE_SHUTDOWN_GRACE_SECONDS="600", **only()).start()
    hub.http.post("/message", json={"text": SLOW})
    wait_for(lambda: slow.requests, "the model to be asked")
    hub.signal(signal.SIGINT)
    wait_for(lambda: hub.http.get("/health").json()["phase"] == "stopping", "the hub to stop")
    hub.signal(signal.SIGTERM)
    assert hub.wait(30) == 0


@pytest.mark.req("DUR-01", "AGT-06")
def test_a_killed_thinker_comes_back_and_the_turn_goes_on(make_hub: MakeHub, slow: ScriptedServer) -> None:
    hub = make_hub(**only()).start()
    message_id = hub.http.post("/message", json={"text": SLOW}).json()["messageId"]
    wait_for(lambda: slow.requests, "the model to be asked")
    old = hub.http.get("/agents").json()["agents"][0]["pid"]
    os.kill(old, signal.SIGKILL)
    found = hub.http.get(f"/messages/{message_id}", params={"wait": seconds(60)}).json()
    assert (found["state"], found["reply"]["text"]) == ("done", "worth the wait")
    agent = hub.http.get("/agents").json()["agents"][0]
    assert agent["pid"] != old
    assert agent["restartCount"] == 1
    assert not agent["flapping"]


@pytest.mark.req("AGT-06")
def test_an_agent_that_keeps_dying_is_reported_as_flapping(make_hub: MakeHub) -> None:
    hub = make_hub(**only()).start()
    hub.say("hello")
    for _ in range(4):
        pid = wait_for(lambda: hub.http.get("/agents").json()["agents"][0]["pid"], "a running agent")
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: hub.http.get("/agents").json()["agents"][0]["pid"] != pid, "its death to be seen")  # noqa: B023
    wait_for(lambda: hub.http.get("/agents").json()["agents"][0]["flapping"], "flapping to be reported")
    assert "agent_flapping:annabelle" in [notice["topic"] for notice in hub.http.get("/status").json()["notices"]]
    assert hub.say("still there?")["state"] == "done"


@pytest.mark.req("AGT-02", "AGT-03")
def test_an_idle_agent_stops_and_comes_back_with_nothing_forgotten(make_hub: MakeHub, home: Home) -> None:
    home.agents_file.write_text(json.dumps({"agents": [{"agentId": "annabelle", "idleTimeoutMinutes": 0.01}]}))
    hub = make_hub(AGENT_IDLE_SCAN_SECONDS="0.2", **only()).start()
    assert hub.http.get("/agents").json()["agents"][0]["state"] == "stopped"
    hub.say("first words")
    wait_for(lambda: hub.http.get("/agents").json()["agents"][0]["state"] == "stopped", "the agent to stop")
    assert hub.http.get("/agents").json()["agents"][0]["available"]
    assert hub.say("second words")["state"] == "done"
    session = (home.agent("annabelle") / "sessions").glob("*.jsonl")
    assert any("first words" in file.read_text() and "second words" in file.read_text() for file in session)


@pytest.mark.req("AGT-01", "HUB-01")
def test_agents_json_is_taken_up_while_the_hub_runs_and_a_bad_one_is_not(make_hub: MakeHub, home: Home) -> None:
    hub = make_hub(**only("filer")).start()
    assert hub.say("hello")["state"] == "done"
    first_pid = hub.http.get("/agents").json()["agents"][0]["pid"]
    file = {
        "agents": [
            {"agentId": "annabelle", "systemPrompt": "You are terse.", "allowedTools": ["get_status"]},
            {"agentId": "second"},
        ],
        "bindings": [{"channel": "api", "chatId": "work", "agentId": "second"}],
    }
    home.agents_file.write_text(json.dumps(file))
    wait_for(lambda: len(hub.http.get("/agents").json()["agents"]) == 2, "the new agents")
    wait_for(
        lambda: hub.http.get("/agents").json()["agents"][0]["pid"] not in (first_pid, None),
        "the changed agent's restart",
    )
    bound = hub.say("hello", chatId="work")
    threads = {thread["id"]: thread["agentId"] for thread in hub.http.get("/threads").json()["threads"]}
    assert threads[bound["threadId"]] == "second"
    # A model may ask for what it was never shown.
    forbidden = json.dumps({"calls": [{"name": "filer_list_grants", "arguments": {}}], "say": "{result}"})
    answer = hub.say(forbidden)
    assert "There is no tool named filer_list_grants" in answer["reply"]["text"]  # type: ignore[index]
    assert answer["reply"]["metadata"]["tools_used"] == []  # type: ignore[index]
    home.agents_file.write_text("{ broken")
    wait_for(
        lambda: "agents_config" in [notice["topic"] for notice in hub.http.get("/status").json()["notices"]], "a notice"
    )
    assert len(hub.http.get("/agents").json()["agents"]) == 2


@pytest.mark.req("DUR-01", "DUR-03", "MEM-12")
@pytest.mark.incident("I-20")
@pytest.mark.timeout(600)
def test_a_hub_killed_at_any_named_moment_answers_exactly_once(make_hub: MakeHub, tmp_path: Path) -> None:
    armed = tmp_path / "failpoints"
    armed.mkdir()
    hub = make_hub(ANNABELLE_FAILPOINTS=str(armed)).start()
    calls = [{"name": "filer_list_grants", "arguments": {}}]
    answered: list[str] = []
    for point in FAILPOINTS:
        body = {"text": json.dumps({"calls": calls, "say": point}), "externalId": point, "chatId": point}
        (armed / point).touch()
        with contextlib.suppress(httpx.TransportError):  # some points lie behind the answer
            hub.http.post("/message", params={"wait": seconds(60)}, json=body)
        assert hub.wait() == -signal.SIGKILL, f"{point} was not reached"
        hub.start()
        found = hub.http.post("/message", params={"wait": seconds(60)}, json=body).json()
        assert (found["state"], found["reply"]["text"]) == ("done", point)
        listed = hub.http.get(f"/threads/{found['threadId']}/messages").json()["messages"]
        assert [(line["type"], line["source"]) for line in listed] == [
            ("text", "user"),
            ("tool", "agent"),
            ("text", "agent"),
        ], point
        events = [e["type"] for e in hub.http.get(f"/messages/{found['messageId']}/events").json()["events"]]
        assert events.count("message") == events.count("done") == 1, point
        answered.append(str(found["messageId"]))
    wait_for(lambda: remembered(hub) == answered, "every turn in the memory, once and in order")
    assert hub.stop() == 0


def remembered(hub: HubProcess) -> list[str]:
    """The messages whose turns the memory has."""
    with contextlib.closing(sqlite3.connect(f"file:{hub.home.memory_file}?mode=ro", uri=True)) as database:
        return [row[0] for row in database.execute("SELECT message_id FROM conversations ORDER BY id")]
