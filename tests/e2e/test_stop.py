"""Stop stops: with a thinker, a server or the whole hub hanging, for good, and nothing but what was meant.

A call that nobody waits for any more ends at its server, with everything it had started.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator

import httpx2 as httpx
import psutil
import pytest

from annabelle.cli.stop import HaltControl
from annabelle.hub.agents.halts import Halts
from annabelle.store.audit.records import AuditPaths, AuditQuery, read_latest
from annabelle.store.audit.verification import verify_audit
from cli.terminal import ANNABELLE
from e2e.days import plan, reply
from hub.hubs import HubProcess, fresh_home, wait_for
from support import timing
from support.few_servers import only
from support.scripted_model import Reply, Rule, ScriptedServer


@pytest.fixture(scope="module")
def one_hub(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[HubProcess]:
    """One hub with two agents for all that is stopped here."""
    home = fresh_home(tmp_path_factory.mktemp("stopped"))
    home.agents_file.write_text(json.dumps({"agents": [{"agentId": "annabelle"}, {"agentId": "other"}]}))
    hub = HubProcess(home, model.openai_url, **only("codexec", "memory")).start()
    yield hub
    hub.end()


@pytest.fixture
def hub(one_hub: HubProcess) -> HubProcess:
    """The hub, with nothing stopped in it."""
    one_hub.http.post("/resume").raise_for_status()
    return one_hub


def annabelle(hub: HubProcess, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ANNABELLE, *words], env=hub.environment, capture_output=True, text=True, timeout=timing.seconds(60)
    )


def thinker(hub: HubProcess) -> int:
    return int(hub.http.get("/agents").json()["agents"][0]["pid"])


def server(hub: HubProcess, name: str) -> int:
    return next(int(one["pid"]) for one in hub.http.get("/status").json()["servers"] if one["name"] == name)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def sleeping(seconds: str) -> list[int]:
    """Processes that sleep for just so long; each test has a number of its own."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cmdline()[:2] == ["sleep", seconds] and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


def state(hub: HubProcess, message: dict[str, str]) -> dict[str, object]:
    return hub.http.get(f"/messages/{message['messageId']}").json()


def code(answer: dict[str, object]) -> object:
    return answer["reply"]["metadata"]["error"]["code"]  # type: ignore[index]


@pytest.mark.req("TRU-06", "LOOP-09")
@pytest.mark.incident("I-27")
def test_a_cancelled_turn_ends_though_its_thinker_hangs_and_another_thread_goes_on(
    hub: HubProcess, rules: ScriptedServer
) -> None:
    rules.rules(
        Rule(match="for ever", reply=Reply(hang=True)),
        Rule(match="for a while", reply=Reply(hang=True), times=1),
        Rule(match="for a while", reply=Reply(text="done in the end")),
    )
    unwanted = hub.http.post("/message", json={"text": "think for ever", "chatId": "one"}).json()
    wanted = hub.http.post("/message", json={"text": "think for a while", "chatId": "other"}).json()

    def asked(words: str) -> int:
        return sum(words in json.dumps(request.body) for request in rules.requests)

    wait_for(lambda: asked("for ever") and asked("for a while"), "both to be thought about")
    hung = thinker(hub)
    os.kill(hung, signal.SIGSTOP)

    cancelled = hub.http.post(f"/messages/{unwanted['messageId']}/cancel", params={"wait": timing.seconds(1)}).json()
    assert (cancelled["state"], code(cancelled)) == ("failed", "cancelled")
    wait_for(lambda: gone(hung), "the end of the thinker", 2)
    went_on = hub.http.get(f"/messages/{wanted['messageId']}", params={"wait": timing.seconds(40)}).json()
    assert reply(went_on) == "done in the end"
    owed = hub.home.halts_file
    wait_for(lambda: json.loads(owed.read_text())["owed"] == {}, "the new thinker to be told")
    times, told = asked("for ever"), thinker(hub)
    os.kill(told, signal.SIGKILL)
    wait_for(lambda: gone(told), "the end of the thinker", 5)
    assert reply(hub.say("think for a while once more", chatId="third")) == "done in the end"
    assert asked("for ever") == times, "one that was not told would take the turn up again at each start"
    assert reply(hub.say("think for a while again", chatId="one")) == "done in the end"
    assert asked("for ever") <= times + 1, "the stopped turn is history now, and nothing more"


@pytest.mark.req("TRU-06")
@pytest.mark.incident("I-27")
def test_one_agent_is_stopped_alone(hub: HubProcess) -> None:
    alone = hub.http.post("/stop", json={"target": "other"}).json()
    assert alone["message"] == "other is stopped. It stays so until: annabelle resume other"
    assert alone["halted"] == {"all": False, "agents": ["other"], "parts": []}
    stopped = hub.say("anybody?", agentId="other", chatId="theirs")
    assert reply(stopped) == "The agent other was stopped by the owner. Let it go on with: annabelle resume other"
    assert reply(hub.say(plan("me"), chatId="mine")) == "me"
    unknown = hub.http.post("/stop", json={"target": "nobody"})
    assert (unknown.status_code, unknown.json()["error"]["message"]) == (404, "There is no agent nobody.")
    assert hub.http.post("/resume", json={"target": "other"}).json()["halted"] == {
        "all": False,
        "agents": [],
        "parts": [],
    }


@pytest.mark.req("TRU-06", "LOOP-09", "TRU-08")
@pytest.mark.incident("I-27", "I-14")
def test_everything_stops_though_thinker_and_server_hang_until_it_is_resumed(hub: HubProcess) -> None:
    endless = {"language": "bash", "code": "sleep 73.25", "timeout_ms": 100_000}
    begun = hub.http.post("/message", json={"text": plan("never said", ("codexec_execute_code", endless))}).json()
    wait_for(lambda: sleeping("73.25"), "the code to run", 60)
    hung = [thinker(hub), server(hub, "codexec")]
    for pid in hung:
        os.kill(pid, signal.SIGSTOP)

    stopped = hub.http.post("/stop").json()
    assert stopped["halted"] == {"all": True, "agents": [], "parts": []}
    assert stopped["turns"] == 1
    assert Halts(hub.home.halts_file).everything is not None, "it is written down when the owner is told"
    ended = state(hub, begun)
    assert (ended["state"], code(ended)) == ("failed", "cancelled")
    wait_for(lambda: not sleeping("73.25"), "the end of the code", 2)
    wait_for(lambda: all(gone(pid) for pid in hung), "the end of what hung", 2)
    refused = hub.say("and now?", chatId="later")
    assert code(refused) == "agent_stopped"
    assert reply(refused) == "Everything was stopped by the owner. Let it go on with: annabelle resume"

    resumed = annabelle(hub, "resume")
    assert (resumed.returncode, resumed.stdout) == (0, "Everything goes on.\n"), resumed.stderr
    assert reply(hub.say(plan("here again"), chatId="later")) == "here again"
    assert state(hub, begun) == ended, "what was ended is not taken up again"
    events = [(one["kind"], one["facts"].get("event")) for one in hub.http.get("/audit?last=500").json()["records"]]
    assert events.index(("stop", "stopped")) < len(events) - 1 - events[::-1].index(("stop", "resumed"))


@pytest.mark.req("SRV-ALL", "SRV-EXE")
def test_a_call_at_the_terminal_ends_with_ctrl_c(hub: HubProcess) -> None:
    arguments = ["codexec_execute_code", "language=bash", "code=sleep 71.25", "timeout_ms=100000"]
    calling = subprocess.Popen(
        [ANNABELLE, "tools", "call", *arguments], env=hub.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_for(lambda: sleeping("71.25"), "the code to run", 30)
    calling.send_signal(signal.SIGINT)
    assert calling.wait(timing.seconds(30)) == 130
    calling.communicate()
    wait_for(lambda: not sleeping("71.25"), "the end of the code", 15)


@pytest.mark.req("LOOP-09", "SRV-EXE")
def test_a_stopped_turn_takes_its_calls_along(hub: HubProcess) -> None:
    code_that_sleeps = {"language": "bash", "code": "sleep 72.25", "timeout_ms": 100_000}
    text = plan("never said", ("codexec_execute_code", code_that_sleeps))
    begun = hub.http.post("/message", json={"text": text, "chatId": "stopped"}).json()
    wait_for(lambda: sleeping("72.25"), "the code to run", 60)
    ended = hub.http.post(f"/messages/{begun['messageId']}/cancel", params={"wait": timing.seconds(30)}).json()
    assert code(ended) == "cancelled"
    wait_for(lambda: not sleeping("72.25"), "the end of the code", 15)


@pytest.mark.req("TRU-06", "TRU-08")
@pytest.mark.incident("I-27", "I-14")
def test_a_hub_that_hangs_is_ended_and_starts_stopped(hub: HubProcess) -> None:
    places = AuditPaths.from_home(hub.home)
    below = [process.pid for process in hub.children()]
    hub.signal(signal.SIGSTOP)
    ended = annabelle(hub, "stop")
    assert ended.stdout.startswith("Annabelle did not answer, so it was ended."), ended.stderr
    assert hub.wait() == -signal.SIGKILL
    wait_for(lambda: all(gone(pid) for pid in below), "everything below to end", 10)
    assert verify_audit(places).is_intact
    last = read_latest(places, AuditQuery(last=1, kind="stop"))[0].facts
    assert (last["event"], last["target"], last["hub_killed"]) == ("stopped", "all", True)

    hub.start()
    assert code(hub.say("still?", chatId="mine")) == "agent_stopped"
    about = hub.http.get("/status").json()
    assert {(one["stopped"], one["available"], one["pid"]) for one in about["agents"]} == {(True, False, None)}
    assert any("Everything is stopped" in notice["text"] for notice in about["notices"])
    conflict = hub.http.post("/resume", json={"target": "other"})
    assert (conflict.status_code, conflict.json()["error"]["code"]) == (409, "conflict")
    for _ in range(7):
        assert httpx.get(f"{hub.url}/status", headers={"X-Annabelle-Token": "not-the-token"}).status_code == 401
    hub.stop()
    assert read_latest(places, AuditQuery(kind="login"))[-1].facts.get("more") == 2, (
        "what was only counted is told at the end"
    )
    assert verify_audit(places).is_intact
    offline = HaltControl(hub.home).resume("all")
    assert (offline.message, offline.how) == ("Everything goes on when Annabelle starts.", "written")
    assert Halts(hub.home.halts_file).find("other") is None
