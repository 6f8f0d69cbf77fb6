"""A stop with real processes: a server that hangs, a second stop, a restart. Stopped is stopped until it is resumed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from hub.hubs import HubProcess, fresh_home, wait_for
from support.few_servers import only
from support.scripted_model import Call, Reply, Rule, ScriptedServer
from support.timing import seconds


@pytest.fixture(autouse=True)
def _rules(model: ScriptedServer) -> None:
    model.rules(
        Rule(match="look around", results=0, reply=Reply(tool_calls=[Call(name="filer_list_files", arguments={})])),
        Rule(match="look around", results=1, reply=Reply(text="I looked.")),
        Rule(match="hello", reply=Reply(text="Hello.")),
    )


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[HubProcess]:
    started = HubProcess(fresh_home(tmp_path_factory.mktemp("stop")), model.openai_url, **only("filer")).start()
    yield started
    started.end()


def filer(hub: HubProcess) -> int | None:
    return next(one["pid"] for one in hub.http.get("/servers").json()["servers"] if one["name"] == "filer")


def reply(answer: dict[str, object]) -> str:
    return str(answer["reply"]["text"])  # type: ignore[index]


@pytest.mark.req("TRU-06", "LOOP-09")
@pytest.mark.incident("I-27")
def test_a_cancelled_turn_ends_though_its_server_hangs_and_the_server_comes_back(hub: HubProcess) -> None:
    assert reply(hub.say("look around", chatId="warm")) == "I looked."
    hung = filer(hub)
    assert hung is not None
    os.kill(hung, signal.SIGSTOP)
    begun = hub.http.post("/message", json={"text": "look around", "chatId": "hung"}).json()

    def calling() -> bool:
        events = hub.http.get(f"/messages/{begun['messageId']}/events").json()["events"]
        return any(event["type"] == "tool_start" for event in events)

    wait_for(calling, "the call")
    ended = hub.http.post(f"/messages/{begun['messageId']}/cancel", params={"wait": seconds(1)}).json()
    assert ended["reply"]["metadata"]["error"]["code"] == "cancelled"
    wait_for(lambda: not psutil.pid_exists(hung), "the end of what hung", 2)
    wait_for(lambda: filer(hub) not in (None, hung), "the next filer")
    wait_for(lambda: reply(hub.say("look around", chatId="warm")) == "I looked.", "a filer that answers")


@pytest.mark.req("TRU-06")
@pytest.mark.incident("I-27")
def test_stopped_twice_at_once_and_started_again_it_stays_stopped_until_it_is_resumed(hub: HubProcess) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: hub.http.post("/stop"), range(4)))
    assert {(one.status_code, one.json()["halted"]["all"]) for one in answers} == {(200, True)}
    hub.stop()
    hub.start()
    assert reply(hub.say("hello", chatId="later")).startswith("Everything was stopped by the owner.")
    again = hub.http.post("/stop").json()
    assert (again["turns"], again["halted"]) == (0, {"all": True, "agents": [], "parts": []})
    hub.kill()
    hub.start()
    assert reply(hub.say("hello", chatId="later")).startswith("Everything was stopped by the owner.")
    assert hub.http.post("/resume").json()["message"] == "Everything goes on."
    assert hub.http.post("/resume").json()["message"] == "Nothing was stopped."
    assert reply(hub.say("hello", chatId="later")) == "Hello."
    hub.stop()  # no test leaves a process behind that it started
