"""Commands beside a real thinker, a real memory and a scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from hub.hubs import HubProcess
from support.few_servers import only
from support.scripted_model import Reply, Rule, ScriptedServer

Make = Callable[..., HubProcess]


def text_of(answer: dict[str, object]) -> str:
    assert isinstance(answer["reply"], dict), answer
    return str(answer["reply"]["text"])


def shown(model: ScriptedServer) -> str:
    """The last request to the model."""
    return json.dumps(model.requests[-1].body)


@pytest.mark.req("CMD-01", "CMD-04", "SES-05")
@pytest.mark.incident("I-08")
def test_what_was_deleted_or_ended_is_never_shown_to_the_model_again(make_hub: Make, model: ScriptedServer) -> None:
    model.rules(Rule(match="", reply=Reply(text="Noted.")))
    hub = make_hub(**only()).start()  # which recalls what was said on purpose
    try:
        for text in ("The first flower is tulip.", "The second flower is crocus."):
            hub.say(text, chatId="flowers")
        hub.say("Which flowers?", chatId="flowers")
        assert "tulip" in shown(model)
        assert "crocus" in shown(model)
        asked = len(model.requests)
        assert text_of(hub.say("/delete 4 confirm", chatId="flowers")).startswith("Deleted 4 messages")
        assert len(model.requests) == asked, "no model was asked"
        hub.say("And now?", chatId="flowers")
        assert "tulip" in shown(model)
        assert "crocus" not in shown(model)
        assert "/delete" not in shown(model)
        asked = len(model.requests)
        begun = hub.say("/new", chatId="flowers")
        assert len(model.requests) == asked
        hub.stop()
        hub.start()
        said = hub.say("Which flowers now?", chatId="flowers")
        assert said["threadId"] == begun["threadId"]
        assert "tulip" not in shown(model)
        assert "/new" not in shown(model)
    finally:
        model.rules()


@pytest.mark.req("CMD-01")
def test_facts_are_found_in_the_real_memory_without_a_model(shared_hub: HubProcess, model: ScriptedServer) -> None:
    fact = {"fact": "The boat is moored at Évora.", "category": "background"}
    stored = shared_hub.http.post("/tools/call", json={"name": "memory_store_fact", "arguments": fact}).json()
    assert "is_error" in stored, stored
    asked = len(model.requests)
    assert text_of(shared_hub.say("/memory BOAT evora", chatId="facts")) == "The boat is moored at Évora. (background)"
    assert text_of(shared_hub.say("/memory submarine", chatId="facts")) == "No fact has these words."
    assert len(model.requests) == asked
