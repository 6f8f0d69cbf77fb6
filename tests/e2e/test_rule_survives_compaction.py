"""A standing rule does not live in the context: summed up, restarted or thinned out, the conversation is held to it."""

from __future__ import annotations

import json

import pytest

from annabelle.core.home import Home
from e2e.days import MakeHub, plan, reply
from hub.hubs import HubProcess, wait_for
from support.few_servers import only
from support.scripted_model import Recorded, Reply, Rule, ScriptedServer

RULE = "Always ask before deleting files."
SUMMED_UP = "They talked about the weather. Nothing was agreed."
TALK = "and the rain went on and on; " * 30
AT_ONCE = {
    "THINKER_SESSION_COMPACTION_THRESHOLD_CHARS": "1000",
    "THINKER_SESSION_COMPACTION_MIN_TURNS": "2",
    "THINKER_SESSION_COMPACTION_KEEP_RECENT": "1",
    "THINKER_SESSION_COMPACTION_COOLDOWN_SECONDS": "0",
}


@pytest.mark.req("TRU-05", "SES-03")
@pytest.mark.incident("I-14")
def test_a_rule_is_held_when_the_turn_that_stated_it_was_summed_up_without_it(
    make_hub: MakeHub, home: Home, rules: ScriptedServer
) -> None:
    rules.rules(Rule(system="You sum up", reply=Reply(text=SUMMED_UP)))
    hub = make_hub(FACT_EXTRACTION_ENABLED="false", **AT_ONCE, **only("filer")).start()
    hub.say(f"{RULE}\n{plan('I will.')}")
    for number in range(4):
        assert reply(hub.say(plan(f"{number}: {TALK}"))).startswith(f"{number}: ")
    wait_for(lambda: "compaction" in _kinds(home), "the conversation to be summed up")

    precious = hub.home.workspace / "precious.txt"
    precious.parent.mkdir(parents=True, exist_ok=True)
    precious.write_text("x")
    _ask_to_delete(hub, precious.name)
    asked = _last_thought(rules)
    assert SUMMED_UP in asked
    assert "before deleting" not in asked, "the model knows nothing of the rule"
    assert precious.exists(), "and it is held all the same"
    (question,) = hub.http.get("/approvals").json()["approvals"]
    assert (question["tool"], question["state"]) == ("filer_delete_file", "pending")
    assert f"Your rule says: {RULE}" in question["reasons"]


def _ask_to_delete(hub: HubProcess, name: str) -> None:
    """An order that names the file, which without the rule is enough."""
    hub.say(f"Delete the file {name}\n{plan('deleted', ('filer_delete_file', {'path': name}))}")


def _kinds(home: Home) -> set[str]:
    sessions = (home.agent("annabelle") / "sessions").glob("*.jsonl")
    return {str(json.loads(line)["type"]) for path in sessions for line in path.read_text().splitlines()}


def _last_thought(model: ScriptedServer) -> str:
    """What the model was given when it last answered the person."""
    return json.dumps(next(one.body for one in reversed(model.requests) if not _sums_up(one)))


def _sums_up(request: Recorded) -> bool:
    return any("You sum up" in one.text for one in request.conversation.turns)
