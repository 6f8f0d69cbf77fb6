"""Real processes: a thinker that dies between a person's yes and the turn that goes on with it."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from annabelle.core.home import Home
from hub.hubs import HubProcess, wait_for
from support.few_servers import only
from support.scripted_model import Call, Reply, Rule, ScriptedServer
from support.timing import seconds
from support.toolbox import TESTS


@pytest.mark.req("POL-03", "DUR-02")
@pytest.mark.incident("I-28")
def test_a_thinker_killed_between_the_yes_and_its_turn_costs_nothing_and_doubles_nothing(
    home: Home, tmp_path: Path, model: ScriptedServer, make_hub: Callable[..., HubProcess]
) -> None:
    mark = Call(name="witness_mark", arguments={"key": "a"})
    model.rules(
        Rule(match="do the thing", results=0, reply=Reply(tool_calls=[mark])),
        Rule(match="do the thing", results=1, reply=Reply(text="The thing is done.")),
    )
    witness = tmp_path / "witness.jsonl"
    server = str(TESTS / "support" / "witness_server.py")
    entry = {"command": sys.executable, "args": [server], "env": {"WITNESS_FILE": str(witness)}}
    home.prepare()
    (home.config / "external-mcps.json").write_text(json.dumps({"mcpServers": {"witness": entry}}))
    hub = make_hub(**only()).start()
    said = hub.say("Please do the thing")
    (question,) = hub.http.get("/approvals").json()["approvals"]
    assert (said["state"], question["state"], witness.exists()) == ("done", "pending", False)

    (agent,) = hub.http.get("/agents").json()["agents"]
    os.kill(agent["pid"], signal.SIGSTOP)  # it hears of the answer and can do nothing about it
    answered = hub.http.post(f"/approvals/{question['id']}", json={"verdict": "approve"}).json()
    going_on = f"/messages/{answered['messageId']}"
    wait_for(lambda: hub.http.get(going_on).json()["state"] == "running", "the turn that goes on")
    os.kill(agent["pid"], signal.SIGKILL)

    outcome = hub.http.get(going_on, params={"wait": seconds(40)}, timeout=seconds(60)).json()
    model.rules()
    assert (outcome["state"], outcome["reply"]["text"]) == ("done", "The thing is done.")
    assert [json.loads(line)["key"] for line in witness.read_text().splitlines()] == ["a"]
    assert hub.http.get(f"/approvals/{question['id']}").json()["state"] == "used"
