"""Providers that refuse, push back, fail, hang or stop midway: tried again as it deserves, then said honestly."""

from __future__ import annotations

import pytest

from e2e.days import reply
from hub.hubs import HubProcess
from support.scripted_model import Reply, Rule, ScriptedServer

HALF = Reply(text="one two three four", chunks=4, drop_after=2)
PASSING = {
    "429": Reply.failing(429, "slow down", retry_after=0.1),
    "500": Reply.failing(500, "on fire"),
    "timeout": Reply(hang=True),
    "silence in the middle": Reply(text="one two three four", chunks=4, hang_after=2),
    "half a stream": HALF,
    "a stream that ends too early": Reply(text="one two three four", chunks=4, cut_after=2),
}
LASTING = {
    "401": (Reply.failing(401, "bad key"), 1, "Check COMPATIBLE_API_KEY"),
    "429": (Reply.failing(429, "slow down"), 8, "is limiting requests. Send the message again in a while."),
    "500": (Reply.failing(500, "on fire"), 6, "It says: on fire"),
    "half a stream": (HALF, 6, "broke off"),
}


@pytest.mark.req("DUR-05", "LLM-08")
@pytest.mark.parametrize("trouble", PASSING)
def test_trouble_that_passes_costs_time_and_nothing_else(
    house: HubProcess, rules: ScriptedServer, trouble: str
) -> None:
    rules.rules(
        Rule(match="passing trouble", times=1, reply=PASSING[trouble]),
        Rule(match="passing trouble", reply=Reply(text="one two three four", chunks=4)),
    )
    answer = house.say("passing trouble", chatId=f"passing {trouble}")
    assert (answer["state"], reply(answer)) == ("done", "one two three four")
    assert len(rules.requests) == 2
    told = house.http.get(f"/messages/{answer['messageId']}/events").json()["events"]
    whole = [event for event in told if event["type"] == "text" and event["data"].get("final")]
    assert [event["data"]["text"] for event in whole] == ["one two three four"]
    attempts = [event["key"].split(":")[1] for event in told if event["type"] == "text" and event not in whole]
    assert attempts == sorted(attempts, key=int)


@pytest.mark.req("DUR-05")
@pytest.mark.parametrize("trouble", LASTING)
def test_trouble_that_lasts_is_one_honest_sentence_and_the_chat_goes_on(
    house: HubProcess, rules: ScriptedServer, trouble: str
) -> None:
    failing, tries, says = LASTING[trouble]
    rules.rules(Rule(match="go on", reply=Reply(text="on we go")), Rule(match="lasting trouble", reply=failing))
    chat = f"lasting {trouble}"
    answer = house.say("lasting trouble", chatId=chat)
    assert answer["state"] == "failed"
    assert says in reply(answer)
    assert "Traceback" not in reply(answer)
    assert len(rules.requests) == tries
    assert reply(house.say("go on", chatId=chat)) == "on we go"
    listed = house.http.get(f"/threads/{answer['threadId']}/messages").json()["messages"]
    assert [line["source"] for line in listed] == ["user", "error", "user", "agent"]
