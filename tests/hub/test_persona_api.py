"""Who an agent is, read and written over HTTP (CTX-08)."""

from __future__ import annotations

import pytest

from hub.hubs import HubProcess
from support.scripted_model import Reply, Rule, ScriptedServer

PATH = "/agents/annabelle/persona"


@pytest.mark.req("CTX-08")
def test_a_new_persona_counts_from_the_next_message_on_and_an_empty_one_is_the_default(
    shared_hub: HubProcess, model: ScriptedServer
) -> None:
    http = shared_hub.http
    before = http.get(PATH).json()
    assert (before["setting"], before["file"]) == ("", "")
    assert before["default"].startswith("# Who you are")
    model.rules(Rule(system="You are a pirate", reply=Reply(text="Arr.")), Rule(reply=Reply(text="Good day.")))
    changed = http.post(PATH, json={"text": "You are a pirate.\n"})
    said = shared_hub.say("Who are you?", chatId="persona")["reply"]
    restored = http.post(PATH, json={"text": " "})  # before anything can fail: the hub is shared
    assert changed.json() == {**before, "file": "You are a pirate."}
    assert isinstance(said, dict)
    assert said["text"] == "Arr."
    assert restored.json() == before
    assert shared_hub.say("And now?", chatId="persona")["reply"]["text"] == "Good day."  # type: ignore[index]


@pytest.mark.req("CTX-08")
def test_an_unknown_agent_and_a_text_that_is_too_long_are_refused(shared_hub: HubProcess) -> None:
    assert shared_hub.http.get("/agents/nobody/persona").status_code == 404
    assert shared_hub.http.post("/agents/nobody/persona", json={"text": "x"}).status_code == 404
    assert shared_hub.http.post(PATH, json={"text": "x" * 50_001}).status_code == 422
    assert shared_hub.http.post(PATH, json={}).status_code == 422
