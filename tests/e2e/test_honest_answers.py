"""A whole house with a model that lies, leaks its calls, or is sloppy with arguments: the person reads the truth."""

from __future__ import annotations

import pytest

from e2e.days import reply
from hub.hubs import HubProcess, wait_for
from support.scripted_model import Call, Reply, Rule, ScriptedServer

CREATED = "I've created the file list.txt for you."


@pytest.mark.req("LOOP-05", "TRU-04")
@pytest.mark.incident("I-24")
def test_done_with_nothing_done_never_reaches_a_person(house: HubProcess, rules: ScriptedServer) -> None:
    rules.rules(Rule(match="create|draft", reply=Reply(text=CREATED)))
    answer = house.say("create the file list.txt", chatId="a liar")
    assert reply(answer).startswith("I have not done that: nothing was created.")
    assert [request.body.get("tool_choice", "auto") for request in rules.requests] == ["auto", "required"]
    told = house.http.get(f"/messages/{answer['messageId']}/events").json()["events"]
    whole = [event["data"]["text"] for event in told if event["type"] == "text" and event["data"].get("final")]
    assert whole[-1] == reply(answer)
    assert CREATED not in whole
    listed = house.http.get(f"/threads/{answer['threadId']}/messages").json()["messages"]
    assert CREATED not in [line["text"] for line in listed]


@pytest.mark.req("LOOP-05", "LOOP-03")
def test_a_model_that_is_sent_back_does_it_after_all(house: HubProcess, rules: ScriptedServer) -> None:
    sloppy = {"path": "sent-back.txt", "content": "milk", "overwrite": "true", "slug": None}
    rules.rules(
        Rule(
            match="Check of your draft",
            results=0,
            reply=Reply(tool_calls=[Call(name="filer_create_file", arguments=sloppy)]),
        ),
        Rule(reply=Reply(text="I've created the file sent-back.txt.")),
    )
    answer = house.say("create the file sent-back.txt with milk in it", chatId="sent back")
    assert reply(answer) == "I've created the file sent-back.txt."
    found = list(house.home.root.rglob("sent-back.txt"))
    assert [file.read_text() for file in found] == ["milk"]


@pytest.mark.req("LOOP-04")
def test_a_call_that_leaked_into_the_text_is_made_and_not_shown(house: HubProcess, rules: ScriptedServer) -> None:
    leak = '<function=filer_create_file>{"path": "leaked.txt", "content": "eggs"}</function>'
    rules.rules(
        Rule(match="leaked.txt", results=0, reply=Reply(text=f"One moment. {leak}")),
        Rule(match="leaked.txt", reply=Reply(text="It is there.")),
    )
    answer = house.say("create the file leaked.txt", chatId="a leak")
    assert reply(answer) == "It is there."
    assert [file.read_text() for file in house.home.root.rglob("leaked.txt")] == ["eggs"]
    told = house.http.get(f"/messages/{answer['messageId']}/events").json()["events"]
    starts = [event["data"] for event in told if event["type"] == "tool_start"]
    assert [(start["name"], start["recovered"]) for start in starts] == [("filer_create_file", True)]
    whole = [event["data"]["text"] for event in told if event["type"] == "text" and event["data"].get("final")]
    assert whole == ["One moment.", "It is there."]


@pytest.mark.req("TRU-04")
def test_a_call_that_failed_is_no_success_whatever_the_model_says(house: HubProcess, rules: ScriptedServer) -> None:
    call = Call(name="filer_delete_file", arguments={"path": "never-was.txt"})
    rules.rules(
        Rule(match="never-was", results=0, reply=Reply(tool_calls=[call])),
        Rule(reply=Reply(text="I've deleted never-was.txt.")),
    )
    answer = house.say("delete the file never-was.txt", chatId="a failure")
    assert reply(answer) == "I've deleted never-was.txt.\n\nNote: nothing was deleted in this turn."


@pytest.mark.req("LOOP-05")
def test_small_talk_is_one_request_and_no_tool_is_demanded(house: HubProcess, rules: ScriptedServer) -> None:
    rules.rules(Rule(match="hello", reply=Reply(text="Hello! How are you?")))
    assert reply(house.say("hello", chatId="small talk")) == "Hello! How are you?"
    assert [request.body.get("tool_choice", "auto") for request in rules.requests] == ["auto"]


@pytest.mark.req("LOOP-09")
def test_a_stop_over_the_api_ends_a_turn_and_the_chat_goes_on(house: HubProcess, rules: ScriptedServer) -> None:
    rules.rules(
        Rule(match="resume the talk", reply=Reply(text="Here.")), Rule(match="say nothing", reply=Reply(hang=True))
    )
    accepted = house.http.post("/message", json={"text": "say nothing", "chatId": "stopped here"}).json()
    wait_for(lambda: rules.requests, "the model to be asked")
    stopped = house.http.post(f"/messages/{accepted['messageId']}/cancel", params={"wait": 4}).json()
    assert stopped["state"] == "failed", stopped
    assert stopped["reply"]["metadata"]["error"]["code"] == "cancelled", stopped
    assert reply(house.say("resume the talk", chatId="stopped here")) == "Here."
