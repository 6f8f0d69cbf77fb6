"""Money and tokens end where they are told to end: the book equals what the provider counted, and caps hold."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from annabelle.core.home import Home
from annabelle.policy.costs import count_tries_per_step
from e2e.days import MakeHub, reply
from hub.hubs import HubProcess, wait_for
from support.scripted_model import Call, Reply, Rule, ScriptedServer
from support.timing import seconds

INPUT, OUTPUT = 1000, 4000
PRICE = INPUT * 0.59e-6 + OUTPUT * 0.79e-6  # llama-3.3-70b-versatile at Groq
NANO = 1_000_000_000


def paid(model: ScriptedServer, **settings: str) -> dict[str, str]:
    """Settings of a provider whose prices are known."""
    return {
        "THINKER_LLM_PROVIDER": "groq",
        "GROQ_API_KEY": "gsk_thisisasecretkey1234567890",
        "GROQ_BASE_URL": model.openai_url,
        "LLM_SPACING_SECONDS": "0",
        "EMBEDDING_PROVIDER": "none",
        **settings,
    }


def answer_of(**fields: object) -> Reply:
    return Reply.model_validate({"input_tokens": INPUT, "output_tokens": OUTPUT, **fields})


def budget(hub: HubProcess) -> dict[str, Any]:
    return hub.http.get("/costs/budget").json()["day"]


def nano(usd: float) -> int:
    return round(usd * NANO)


def learn(hub: HubProcess) -> int:
    """Have the hub read for facts what was said so far; how many turns it read."""
    return hub.http.post("/memory/learn", json={}).json().get("turns", 0)


def counted(hub: HubProcess, model: ScriptedServer) -> float:
    """What the book says is spent, which must be what the provider counted."""
    day, calls = budget(hub), len(model.requests)
    assert nano(day["spentUsd"]) == nano(PRICE) * calls
    assert day["heldBackUsd"] == 0
    (total,) = hub.http.get("/costs", params={"by": "model"}).json()["totals"]
    assert (total["key"], total["calls"]) == ("groq/llama-3.3-70b-versatile", calls)
    assert (total["inputTokens"], total["outputTokens"]) == (INPUT * calls, OUTPUT * calls)
    return day["spentUsd"]


@pytest.mark.req("TRU-01", "CST-05", "CST-09")
@pytest.mark.incident("I-17")
def test_the_ledger_equals_what_the_provider_counted_and_never_passes_the_cap(
    make_hub: MakeHub, rules: ScriptedServer
) -> None:
    cap = 0.06
    settings = paid(rules, BUDGET_DAY_USD=str(cap), BUDGET_WARNING_SHARE="0.3", FACT_EXTRACTION_IDLE_SECONDS="3600")
    hub = make_hub(**settings).start()
    rules.rules(
        Rule(match="look", results=0, reply=answer_of(tool_calls=[Call(name="get_status")])),
        Rule(reply=answer_of(text="There you are.")),
    )

    def look(chat: str) -> dict[str, object]:
        return hub.say(f"Have a look, for I build an observatory in Evora since {chat}.", chatId=chat)

    assert look("spring")["state"] == "done"
    wait_for(lambda: learn(hub), "a turn to learn from")
    assert counted(hub, rules) >= 3 * PRICE
    purposes = hub.http.get("/costs", params={"by": "purpose"}).json()["totals"]
    assert [one["key"] for one in purposes] == ["chat", "summary"], "what happens beside a turn is paid for too"

    with ThreadPoolExecutor(8) as people:
        chats = [f"c{number}" for number in range(10)]
        answers = list(people.map(look, chats))
    failed = [answer for answer in answers if answer["state"] == "failed"]
    assert failed
    for answer in failed:
        assert "The budget of the day" in reply(answer)
        assert "BUDGET_DAY_USD" in reply(answer)
    learn(hub)
    assert counted(hub, rules) <= cap
    assert budget(hub)["warnedAt"] is not None
    threads = hub.http.get("/threads").json()["threads"]
    said = [message for thread in threads for message in _messages(hub, thread["id"])]
    assert sum("of the budget of the day" in message["text"] for message in said) == 1, "warned once"

    # Until nothing fits any more; what is refused then never reached the provider.
    for number in range(3):
        hub.say("more", chatId=f"more {number}")
        learn(hub)
    before = len(rules.requests)
    last = hub.say("and more", chatId="last")
    assert last["state"] == "failed"
    assert len(rules.requests) == before
    assert counted(hub, rules) <= cap


def _messages(hub: HubProcess, thread_id: str) -> list[dict[str, Any]]:
    return hub.http.get(f"/threads/{thread_id}/messages").json()["messages"]


@pytest.mark.req("TRU-01")
def test_a_call_that_a_crash_cut_off_stays_held_back_until_it_is_booked(
    make_hub: MakeHub, rules: ScriptedServer
) -> None:
    hub = make_hub(**paid(rules, BUDGET_DAY_USD="5")).start()
    rules.rules(Rule(times=1, reply=Reply(hang=True)), Rule(reply=answer_of(text="Here I am again.")))
    asked = hub.say("are you there?", wait=0)
    wait_for(lambda: rules.requests, "the model to be asked")
    held = budget(hub)["heldBackUsd"]
    assert held > PRICE
    hub.kill()
    hub.start()
    answer = hub.http.get(f"/messages/{asked['messageId']}", params={"wait": seconds(60)}, timeout=seconds(70)).json()
    assert answer["state"] == "done"
    day = budget(hub)
    assert nano(day["spentUsd"]) == nano(PRICE)
    assert nano(day["heldBackUsd"]) == nano(held), "nobody knows what the first call cost"


@pytest.mark.req("CST-02", "CST-04", "LOOP-02")
@pytest.mark.incident("I-16")
def test_a_loop_that_feeds_itself_is_stopped_within_the_cap_and_the_owner_is_told_once(
    make_hub: MakeHub, home: Home, rules: ScriptedServer
) -> None:
    controls = {"hardCapTokensPerHour": 20_000}
    home.agents_file.write_text(
        json.dumps({"agents": [{"agentId": "annabelle", "maxSteps": 50, "costControls": controls}]})
    )
    hub = make_hub(FACT_EXTRACTION_ENABLED="false", LLM_SPACING_SECONDS="0").start()
    rules.rules(
        Rule(match="calm", reply=Reply(text="Calm again.", input_tokens=10, output_tokens=10)),
        Rule(reply=Reply(tool_calls=[Call(name="get_status")], input_tokens=4000, output_tokens=1000)),
    )
    answer = hub.say("go on and on", chatId="loop")
    assert answer["state"] == "failed"
    assert "is paused: cost control (it used 20,000 tokens within an hour" in reply(answer)
    assert len(rules.requests) == 4, "the fourth call ended; there was no fifth"
    refused = hub.say("calm?", chatId="loop")
    assert refused["state"] == "failed"
    assert "annabelle costs resume annabelle" in reply(refused)
    assert len(rules.requests) == 4
    hub.stop()
    hub.start()
    (agent,) = hub.http.get("/agents").json()["agents"]
    assert (agent["paused"], agent["costs"]["currentHourTokens"], agent["costs"]["hardCap"]) == (True, 20_000, 20_000)
    thread = hub.http.get(f"/threads/{answer['threadId']}/messages").json()["messages"]
    assert sum("I have paused the agent annabelle" in message["text"] for message in thread) == 1
    resumed = hub.http.post("/agents/annabelle/resume", json={"resetWindow": True}).json()
    assert (resumed["paused"], resumed["costs"]["currentHourTokens"]) == (False, 0)
    assert reply(hub.say("calm?", chatId="loop")) == "Calm again."


@pytest.mark.req("CST-10")
def test_a_message_never_asks_more_often_than_its_worst_case_says(
    make_hub: MakeHub, home: Home, rules: ScriptedServer
) -> None:
    home.agents_file.write_text(json.dumps({"agents": [{"agentId": "annabelle", "maxSteps": 2}]}))
    hub = make_hub(FACT_EXTRACTION_ENABLED="false", LLM_SPACING_SECONDS="0", RETRY_BASE_SECONDS="0.01").start()
    (agent,) = hub.http.get("/agents").json()["agents"]
    slow_down = Reply.failing(429, "slow down")
    rules.rules(
        Rule(times=7, reply=slow_down),
        Rule(times=1, reply=Reply(tool_calls=[Call(name="get_status")])),
        Rule(times=7, reply=slow_down),
        Rule(reply=Reply(text="At last.")),
    )
    assert reply(hub.say("be patient", chatId="slow")) == "At last."
    assert len(rules.requests) == 2 * count_tries_per_step(fallbacks=0) <= agent["worstCaseModelCalls"]
    rules.clear()
    rules.rules(Rule(reply=slow_down))
    assert hub.say("be patient", chatId="never")["state"] == "failed"
    assert len(rules.requests) == count_tries_per_step(fallbacks=0)
