"""A person says stop to a real thinker, wherever its turn is at that moment."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from annabelle.core.contract import AgentProfile
from support.scripted_model import Call, Reply, Rule, ScriptedServer
from support.timing import seconds
from thinker.fake_hub import FakeHub
from thinker.thinkers import Thinker, brief, wait_for

# What is promised, for an idle machine.
WITHIN_SECONDS = 1.0
NEXT = Rule(match="and now", reply=Reply(text="Here again."))
CALLS = Reply(tool_calls=[Call(name="write_note", arguments={"text": "a"}), Call(name="write_note")])
PLACES: dict[str, list[Rule]] = {
    "a model that says nothing": [Rule(match="go", reply=Reply(hang=True))],
    "a model that falls silent": [Rule(match="go", reply=Reply(text="one two three four", chunks=4, hang_after=2))],
    "a tool that hangs": [Rule(match="go", results=0, reply=CALLS)],
    "the wait for the next try": [Rule(match="go", reply=Reply.failing(500, "on fire"))],
    "the second chance of an answer": [
        Rule(match="Check of your draft", reply=Reply(hang=True)),
        Rule(match="go", reply=Reply(text="I've sent the message to Anna.")),
    ],
}
BUSY: dict[str, Callable[[ScriptedServer, FakeHub], bool]] = {
    "a tool that hangs": lambda model, hub: hub.running > 0,
    "the second chance of an answer": lambda model, hub: len(model.requests) == 2,
}


@pytest.mark.req("LOOP-09")
@pytest.mark.incident("I-27")
@pytest.mark.parametrize("place", PLACES)
def test_a_stop_ends_the_turn_wherever_it_is_and_the_conversation_goes_on(
    spare: Callable[[], Thinker], hub: FakeHub, model: ScriptedServer, settings: dict[str, str], place: str
) -> None:
    slow = {**settings, "RETRY_BASE_SECONDS": "60", "RETRY_IMMEDIATE_SECONDS": "60"}
    thinker = spare().adopt(hub.url, slow, AgentProfile(agent_id="tess"))
    model.rules(NEXT, *PLACES[place])
    hub.held.add("write_note")
    asked = brief("go", required_tools=("write_note", "send_message"))
    thinker.client.post("/process-message", content=asked.model_dump_json())
    wait_for(lambda: BUSY.get(place, lambda model, hub: bool(model.requests))(model, hub))
    if place == "the wait for the next try":
        wait_for(lambda: any(line["event"]["type"] == "notice" for line in told(thinker, asked.message_id)))
    stopped = thinker.client.post(f"/turns/{asked.message_id}/cancel", timeout=seconds(WITHIN_SECONDS)).json()
    assert (stopped["state"], stopped["result"]["error"]["code"]) == ("failed", "cancelled")
    assert stopped["result"]["text"] == ""
    after = thinker.ask(brief("and now?"))
    assert after.result is not None
    assert (after.state, after.result.text) == ("done", "Here again.")
    sent: list[dict[str, Any]] = model.requests[-1].body["messages"]
    calls: list[str] = [call["id"] for message in sent for call in message.get("tool_calls", ())]
    assert calls == [message["tool_call_id"] for message in sent if message["role"] == "tool"]
    assert bool(calls) is (place == "a tool that hangs")


def told(thinker: Thinker, message_id: str) -> list[dict[str, Any]]:
    """What a running turn tells up to its first notice."""
    lines: list[dict[str, Any]] = []
    with thinker.client.stream("GET", f"/turns/{message_id}/events") as reply:
        for line in reply.iter_lines():
            lines.append(json.loads(line))
            if lines[-1]["event"]["type"] == "notice":
                break
    return lines
