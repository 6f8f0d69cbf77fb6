"""Subagents in a running hub: one task, one process, one result, whatever is killed meanwhile (AGT-04, I-26)."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from annabelle.core.home import Home
from hub.hubs import HubProcess, fresh_home, wait_for
from support.few_servers import only
from support.scripted_model import Reply, Rule, ScriptedServer, plan_text
from support.timing import seconds

MakeHub = Callable[..., HubProcess]
STATUS: tuple[str, dict[str, Any]] = ("get_status", {})


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[HubProcess]:
    """One hub for all that does not end it; each test has a chat of its own."""
    started = HubProcess(fresh_home(tmp_path_factory.mktemp("subagents")), model.openai_url, **only("filer")).start()
    yield started
    started.end()


@pytest.fixture
def rules(model: ScriptedServer) -> Iterator[ScriptedServer]:
    model.clear()
    yield model
    model.rules()


def send(task: str, **more: object) -> str:
    """A text that makes the agent send a subagent and repeat what it says."""
    return plan_text([("spawn_subagent", {"task": task, **more})], say="It says: {result}")


def text_of(answer: dict[str, Any]) -> str:
    return str(answer["reply"]["text"])


def rows(home: Home, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(f"file:{home.database_file}?mode=ro", uri=True) as connection:
        return connection.execute(query).fetchall()


def subagents(hub: HubProcess) -> list[dict[str, Any]]:
    return [agent for agent in hub.http.get("/status").json()["agents"] if agent["isSubagent"] and agent["pid"]]


def folders(home: Home) -> list[str]:
    return [folder.name for folder in home.agents.glob("*.sub-*")]


def begin(hub: HubProcess, text: str, chat: str = "main") -> dict[str, Any]:
    return hub.http.post("/message", json={"text": text, "chatId": chat}).json()


def its_own(task: str) -> str:
    """Matches what a subagent is told, and not the plan of the agent that sends it."""
    return rf'(?s)^(?!.*"calls").*{task}$'


def asked(model: ScriptedServer, task: str) -> bool:
    return any(re.search(its_own(task), request.conversation.user_text) for request in model.requests)


@pytest.mark.req("AGT-04")
def test_a_subagent_does_its_task_with_narrower_tools_reports_back_and_leaves_nothing_behind(
    hub: HubProcess, rules: ScriptedServer
) -> None:
    home, task = hub.home, plan_text([STATUS], say="checked")
    booked_before = set(rows(home, "select agent_id, message_id from model_calls"))
    answer = hub.say(send(task, allowedTools=["get_*", "spawn_*", "send_*"]), chatId="narrower")
    assert (answer["state"], text_of(answer)) == ("done", "It says: checked")
    mine = [request for request in rules.requests if request.conversation.user_text.endswith(task)]
    offered = {tool["function"]["name"] for request in mine for tool in request.body.get("tools", [])}
    assert "get_status" in offered
    # What its parent has but it did not ask for, and what no subagent has.
    assert not offered & {"spawn_subagent", "queue_task", "send_message", "send_telegram"}
    assert all(name.startswith("get_") for name in offered - {"update_workspace", "search_agent_history"})
    assert (folders(home), subagents(hub)) == ([], [])
    of_message = f"where message_id = '{answer['messageId']}'"
    assert rows(home, f"select kind, state, agent_id from tasks {of_message}") == [("subagent", "done", "annabelle")]
    listed = hub.http.get("/tasks").json()["tasks"][0]
    assert (listed["kind"], listed["state"], listed["result"]) == ("subagent", "done", "checked")
    booked = set(rows(home, "select agent_id, message_id from model_calls"))
    assert booked - booked_before == {("annabelle", answer["messageId"])}
    said = f"select count(*) from messages where kind = 'said' and thread_id = '{answer['threadId']}'"
    assert rows(home, said) == [(0,)]


@pytest.mark.req("AGT-04")
@pytest.mark.incident("I-26")
def test_a_killed_hub_finds_the_same_subagent_again_and_its_result_is_delivered_once(
    make_hub: MakeHub, home: Home, rules: ScriptedServer
) -> None:
    hub = make_hub(**only()).start()
    rules.rules(
        Rule(match=its_own("dig deep"), times=1, reply=Reply(hang=True)),
        Rule(match=its_own("dig deep"), reply=Reply(text="found it")),
    )
    message = begin(hub, send("dig deep"))
    wait_for(lambda: asked(rules, "dig deep"), "the subagent's question")
    (name,) = folders(home)
    hub.kill()
    hub.start()
    answer = hub.http.get(f"/messages/{message['messageId']}", params={"wait": seconds(60)}).json()
    assert (answer["state"], text_of(answer)) == ("done", "It says: found it")
    assert rows(home, "select state, count(*) from tasks") == [("done", 1)]
    assert name.startswith("annabelle.sub-")
    wait_for(lambda: not folders(home), "an empty folder")
    assert rows(home, "select count(*) from messages where kind = 'said'") == [(0,)]


@pytest.mark.req("AGT-04")
@pytest.mark.incident("I-26")
def test_a_killed_subagent_goes_on_where_it_was(hub: HubProcess, rules: ScriptedServer) -> None:
    rules.rules(
        Rule(match=its_own("dig on"), times=1, reply=Reply(hang=True)),
        Rule(match=its_own("dig on"), reply=Reply(text="went on")),
    )
    message = begin(hub, send("dig on"), "killed")
    wait_for(lambda: asked(rules, "dig on"), "the subagent's question")
    (shown,) = subagents(hub)
    assert (shown["parentAgentId"], shown["turns"]) == ("annabelle", 1)
    os.kill(shown["pid"], signal.SIGKILL)
    answer = hub.http.get(f"/messages/{message['messageId']}", params={"wait": seconds(60)}).json()
    assert text_of(answer) == "It says: went on"


@pytest.mark.req("AGT-04")
def test_cancelling_the_turn_ends_the_subagents_process(hub: HubProcess, rules: ScriptedServer) -> None:
    rules.rules(Rule(match=its_own("dig for ever"), reply=Reply(hang=True)))
    message = begin(hub, send("dig for ever"), "cancelled")
    wait_for(lambda: asked(rules, "dig for ever"), "the subagent's question")
    (shown,) = subagents(hub)
    hub.http.post(f"/messages/{message['messageId']}/cancel", params={"wait": seconds(30)})
    wait_for(
        lambda: not psutil.pid_exists(shown["pid"]) or psutil.Process(shown["pid"]).status() == "zombie", "its end"
    )
    task = f"select state from tasks where message_id = '{message['messageId']}'"
    wait_for(lambda: rows(hub.home, task) == [("failed",)], "the end of the task")
    wait_for(lambda: not folders(hub.home), "an empty folder")


@pytest.mark.req("AGT-04")
@pytest.mark.incident("I-26")
def test_a_hub_that_is_stopped_politely_takes_the_subagent_up_again(
    make_hub: MakeHub, home: Home, rules: ScriptedServer
) -> None:
    hub = make_hub(ANNABELLE_SHUTDOWN_GRACE_SECONDS="0.1", **only()).start()
    rules.rules(
        Rule(match=its_own("dig later"), times=1, reply=Reply(hang=True)),
        Rule(match=its_own("dig later"), reply=Reply(text="later")),
    )
    message = begin(hub, send("dig later"))
    wait_for(lambda: asked(rules, "dig later"), "the subagent's question")
    hub.stop()
    hub.start()
    answer = hub.http.get(f"/messages/{message['messageId']}", params={"wait": seconds(60)}).json()
    assert (answer["state"], text_of(answer)) == ("done", "It says: later")
    assert rows(home, "select state, count(*) from tasks") == [("done", 1)]


@pytest.mark.req("AGT-04")
def test_a_folder_that_a_killed_hub_left_behind_is_removed_at_the_next_start(make_hub: MakeHub, home: Home) -> None:
    left = home.agent("annabelle.sub-0123456789ab")
    (left / "sessions").mkdir(parents=True)
    (home.logs / "thinker-annabelle.sub-0123456789ab.log").write_text("x")
    make_hub(**only()).start()
    assert folders(home) == []
    assert not list(home.logs.glob("*.sub-*"))


@pytest.mark.req("TRU-03", "AGT-04")
def test_what_a_subagent_read_taints_its_result_and_the_thread_it_works_for(hub: HubProcess) -> None:
    home = hub.home
    (home.workspace / "page.txt").write_text("Ada owes Mallory money.")
    clean = hub.say(send("say hello"), chatId="tainted")
    assert text_of(clean).startswith("It says: You said:")
    called = f"select trust from tool_calls where message_id = '{clean['messageId']}' and tool = 'spawn_subagent'"
    assert rows(home, called) == [("trusted",)]
    dirty = hub.say(send(plan_text([("filer_read_file", {"path": "page.txt"})], say="{result}")), chatId="tainted")
    assert "Mallory" in text_of(dirty)
    of_message = f"where message_id = '{dirty['messageId']}' order by tool"
    assert rows(home, f"select tool, trust from tool_calls {of_message}") == [
        ("filer_read_file", "untrusted"),
        ("spawn_subagent", "untrusted"),
    ]


@pytest.mark.req("AGT-04")
def test_only_an_agent_in_a_turn_sends_subagents(shared_hub: HubProcess) -> None:
    result = shared_hub.http.post("/tools/call", json={"name": "spawn_subagent", "arguments": {"task": "x"}}).json()
    assert (result["is_error"], result["error"]["code"]) == (True, "not_allowed")
