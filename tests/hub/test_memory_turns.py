"""What was said reaches the memory through real processes: stored once, learnt once it rests, whatever is killed."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
from collections.abc import Callable, Iterator

import psutil
import pytest

from hub.hubs import HubProcess, wait_for
from support.scripted_model import Reply, Rule, ScriptedServer

SAID = "Please note that I have lived in Lisbon since May, and that I work there as a gardener."
FACTS = [
    {
        "fact": "The user works as a gardener.",
        "category": "background",
        "confidence": 0.95,
        "turn": 1,
        "quote": "I work there as a gardener",
    }
]
LEARNING = "You note what is worth remembering"


@pytest.fixture
def learning(model: ScriptedServer) -> Iterator[ScriptedServer]:
    """A model that finds one fact, and answers everything else as always."""
    model.rules(Rule(system=LEARNING, reply=Reply(text=json.dumps(FACTS))))
    yield model
    model.rules()


def call(hub: HubProcess, name: str, **arguments: object) -> dict[str, object]:
    answer = hub.http.post("/tools/call", json={"name": f"memory_{name}", "arguments": arguments})
    assert answer.status_code == 200, answer.text
    assert not answer.json()["is_error"], answer.text
    return answer.json()["structured"]


def conversations(hub: HubProcess) -> list[tuple[str, str, str, str]]:
    file = hub.home.memory_file
    if not file.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        query = "SELECT user_id, agent_id, message_id, user_message FROM conversations ORDER BY id"
        with contextlib.suppress(sqlite3.OperationalError):  # its tables are made by the first call
            return database.execute(query).fetchall()
    return []


def facts(hub: HubProcess) -> list[dict[str, object]]:
    return call(hub, "list_facts")["facts"]  # type: ignore[return-value]


def memory_process(hub: HubProcess) -> psutil.Process:
    listed = hub.http.get("/status").json()["servers"]
    (pid,) = [server["pid"] for server in listed if server["name"] == "memory"]
    return psutil.Process(pid)


@pytest.mark.req("MEM-07", "MEM-09", "MEM-11", "MEM-12")
def test_a_fact_told_in_chat_is_learnt_after_a_rest_and_says_where_it_came_from(
    make_hub: Callable[..., HubProcess], learning: ScriptedServer
) -> None:
    hub = make_hub(FACT_EXTRACTION_IDLE_SECONDS="0.3").start()
    said = hub.say(SAID)
    wait_for(lambda: facts(hub), "a learnt fact")
    assert conversations(hub) == [("owner", "annabelle", said["messageId"], SAID)]
    (fact,) = facts(hub)
    assert fact["fact"] == "The user works as a gardener."
    assert (fact["trust"], fact["confidence"]) == ("trusted", 0.95)
    why = json.dumps(call(hub, "explain_fact", fact_id=fact["id"]))
    for known in (said["messageId"], said["threadId"], "I work there as a gardener"):
        assert str(known) in why
    asked = [request for request in learning.requests if LEARNING in json.dumps(request.body)]
    assert len(asked) == 1


@pytest.mark.req("MEM-07", "MEM-12")
def test_a_hub_and_a_memory_that_are_killed_store_and_learn_everything_once(
    make_hub: Callable[..., HubProcess], learning: ScriptedServer
) -> None:
    hub = make_hub(FACT_EXTRACTION_IDLE_SECONDS="1.5").start()
    memory_process(hub).send_signal(signal.SIGSTOP)  # nothing is stored before the kill
    said = [hub.say(f"{SAID} Number {n}.")["messageId"] for n in range(2)]
    assert conversations(hub) == []
    memory_process(hub).kill()
    hub.kill()
    hub = make_hub(FACT_EXTRACTION_IDLE_SECONDS="0.2").start()
    wait_for(lambda: facts(hub), "a learnt fact")
    assert [row[2] for row in conversations(hub)] == said
    assert len(facts(hub)) == 1
    hub.http.post("/memory/learn", json={}).raise_for_status()
    assert len(facts(hub)) == 1


@pytest.mark.req("MEM-11")
@pytest.mark.incident("I-30")
def test_learning_and_tidying_on_request_work_for_the_callers_own_memory(
    make_hub: Callable[..., HubProcess], learning: ScriptedServer
) -> None:
    hub = make_hub(FACT_EXTRACTION_ENABLED="false").start()
    hub.say(SAID)
    wait_for(lambda: conversations(hub), "a stored conversation")
    learnt = hub.http.post("/memory/learn", json={}).json()
    assert (learnt["turns"], [fact["status"] for fact in learnt["facts"]], learnt["refused"]) == (1, ["stored"], None)
    again = call(hub, "backfill_extract_facts", batch_size=5)
    assert (again["turns"], again["facts"]) == (0, [])
    call(hub, "store_fact", fact="The user is employed as a gardener", category="background")
    first, second = (fact["id"] for fact in facts(hub))
    merge = {
        "action": "merge",
        "ids": [first, second],
        "fact": "The user is a gardener.",
        "category": None,
        "reason": "x",
    }
    learning.rules(Rule(system="You tidy what", reply=Reply(text=json.dumps([merge]))))
    plan = hub.http.post("/memory/tidy", json={}).json()
    assert (plan["applied"], plan["plannedBy"], plan["refused"]) == (False, "model", None)
    assert sorted(plan["actions"][0]["factIds"]) == sorted([first, second])
    assert len(facts(hub)) == 2
    done = hub.http.post("/memory/tidy", json={"apply": True, "actions": plan["actions"]}).json()
    assert done.get("applied"), done
    assert [fact["fact"] for fact in facts(hub)] == ["The user is a gardener."]
    call(hub, "undo_change", change_id=done["changeId"])
    assert len(facts(hub)) == 2
    learning.rules(Rule(system="You tidy what", reply=Reply(text="I would rather not.")))
    ruled = call(hub, "synthesize_facts", preview=True)
    assert (ruled["planned_by"], ruled["applied"]) == ("rules", False)
    assert hub.http.post("/memory/learn", json={"agentId": "nobody"}).status_code == 404
