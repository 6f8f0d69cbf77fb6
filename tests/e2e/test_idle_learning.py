"""What a thread that rests teaches: nothing by a bad answer, each fact once, even over a kill -9 (MEM-07)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from annabelle.core.home import Home
from e2e.days import MakeHub
from hub.hubs import HubProcess, wait_for
from support.scripted_model import Recorded, Reply, Rule, ScriptedServer

NOTING = "worth remembering for years"
SAID = "Since the spring I have been building a small observatory behind my house in Evora."
QUOTE = "I have been building a small observatory"
FACT = {
    "fact": "The user is building an observatory behind the house",
    "category": "project",
    "confidence": 0.9,
    "turn": 1,
    "quote": QUOTE,
}


def structured(hub: HubProcess, tool: str, **arguments: object) -> dict[str, Any]:
    answer = hub.http.post("/tools/call", json={"name": f"memory_{tool}", "arguments": arguments}).json()
    assert not answer["is_error"], answer
    return answer["structured"]


def questions(model: ScriptedServer) -> list[Recorded]:
    """How often the model was asked for facts."""
    return [one for one in model.requests if any(NOTING in turn.text for turn in one.conversation.turns)]


def traced(home: Home, event: str) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in home.traces_file.read_text().splitlines())
    return [line for line in lines if line["event"] == event]


@pytest.mark.req("MEM-07", "MEM-09")
def test_a_bad_answer_teaches_nothing_and_a_good_one_is_stored_once_over_a_kill(
    make_hub: MakeHub, home: Home, rules: ScriptedServer
) -> None:
    hub = make_hub(FACT_EXTRACTION_IDLE_SECONDS="1").start()
    bad = [Reply(text=f"Gladly: {json.dumps([FACT])}"), Reply(text=json.dumps([FACT | {"certainty": 1}]))]
    rules.rules(*(Rule(system=NOTING, times=1, reply=one) for one in bad))
    hub.say(SAID, chatId="porch")
    wait_for(lambda: traced(home, "facts.learnt"), "an end to the learning")
    assert len(questions(rules)) == 2, "an answer that is no use is asked for once more"
    assert (traced(home, "facts.learnt")[0]["data"]["facts"], structured(hub, "list_facts")["facts"]) == (0, [])

    # The model is at work on it when everything is killed.
    rules.clear()
    rules.rules(
        Rule(system=NOTING, times=1, reply=Reply(hang=True)), Rule(system=NOTING, reply=Reply(text=json.dumps([FACT])))
    )
    said = hub.say(f"{SAID} The dome is nearly done.", chatId="garden")
    wait_for(lambda: questions(rules), "the model to be asked for facts")
    assert SAID in json.dumps(questions(rules)[0].body)
    hub.kill()
    hub.start()
    wait_for(lambda: len(traced(home, "facts.learnt")) == 2, "an end to the learning")
    (fact,) = structured(hub, "list_facts", include_retired=True)["facts"]
    assert (fact["fact"], fact["trust"], fact["confidence"]) == (FACT["fact"], "trusted", 0.9)
    why = structured(hub, "explain_fact", fact_id=fact["id"])
    assert (why["source"]["kind"], why["source"]["quote"]) == ("conversation", QUOTE)
    assert (why["source"]["message_id"], why["source"]["thread_id"]) == (said["messageId"], said["threadId"])
    assert why["said"]["user_message"] == f"{SAID} The dome is nearly done."
    assert hub.http.post("/memory/learn", json={}).json()["turns"] == 0, "every turn was looked through"
