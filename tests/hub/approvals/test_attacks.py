"""Questions and answers under attack: at the same moment, by many, changed, and with nobody left to go on."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2 as httpx
import pytest

from annabelle.core.home import Home
from annabelle.core.tools import JsonObject
from annabelle.hub.agents.runner import AgentRunner
from hub.approvals.house import House, a_house
from support.timing import seconds

LETTER: JsonObject = {"to": "bob", "body": "hello"}


@pytest.mark.req("POL-03")
@pytest.mark.incident("I-28")
async def test_of_answers_at_the_same_moment_one_counts_and_every_other_is_told_so(house: House) -> None:
    await house.say(LETTER)
    (question,) = await house.asked()
    verdicts = ["approve", "deny"] * 8
    answers = await asyncio.gather(*(house.answer(question["id"], verdict) for verdict in verdicts))
    assert Counter(one.status_code for one in answers) == {200: 1, 409: 15}
    counted = next(one for one in answers if one.status_code == 200)
    await house.outcome(counted)
    approved = verdicts[answers.index(counted)] == "approve"
    assert house.posted == ([LETTER] if approved else [])
    assert [one["state"] for one in await house.asked(None)] == ["used" if approved else "denied"]


@pytest.mark.req("POL-03")
async def test_the_last_two_questions_of_a_turn_answered_at_once_carry_it_on_once(house: House) -> None:
    letters = [LETTER | {"body": str(n)} for n in range(6)]
    said = await house.say(*letters, together=True)
    questions = await house.asked()
    answers = await asyncio.gather(*(house.answer(one["id"]) for one in questions))
    going_on = [one.json()["messageId"] for one in answers if one.json()["messageId"] is not None]
    assert len(going_on) == 1
    await house.owner.get(f"/messages/{going_on[0]}", params={"wait": seconds(20)})
    assert house.posted == letters
    assert [source for source, _ in await house.said(said["threadId"])] == ["user", "agent", "decision", "agent"]


@pytest.mark.req("POL-03", "TRU-05")
async def test_a_yes_with_changes_that_a_rule_forbids_makes_no_call(house: House) -> None:
    await house.say(LETTER)
    (question,) = await house.asked()
    await house.outcome(await house.answer(question["id"], arguments={"to": "nobody"}))
    assert "Your rule says: never." in str(house.thinker.answers[-1]["error"])
    assert (house.posted, [one["state"] for one in await house.asked(None)]) == ([], ["cancelled"])


@pytest.mark.req("POL-03")
@pytest.mark.incident("I-04")
@pytest.mark.parametrize(
    "more",
    [
        {"tool": "look_around"},
        {"name": "look_around", "arguments": {}},
        {"arguments": {"tool": "look_around"}},
        {"arguments": {"name": "look_around", "to": "bob"}},
        {"arguments": {"to": ["bob", "eve"]}},
        {"arguments": "bob"},
    ],
)
async def test_an_answer_can_not_turn_a_question_into_one_about_another_call(house: House, more: JsonObject) -> None:
    await house.say(LETTER)
    (question,) = await house.asked()
    refused = await house.answer(question["id"], **more)
    assert refused.status_code in (400, 422), refused.text
    assert (house.posted, [one["state"] for one in await house.asked(None)]) == ([], ["pending"])


@pytest.mark.req("POL-03")
async def test_a_queued_call_can_not_be_changed_into_one_the_agent_may_not_make(house: House) -> None:
    action = {"type": "tool_call", "toolName": "post_letter", "parameters": LETTER}
    queueing = {"name": "queue_task", "arguments": {"name": "The letter", "action": action}}
    await house.message(json.dumps({"calls": [queueing], "say": "It is queued."}))
    (question,) = await house.asked()
    changed = {"name": "The letter", "action": {**action, "toolName": "spawn_subagent", "parameters": {"task": "x"}}}
    await house.outcome(await house.answer(question["id"], arguments=changed))
    assert "spawn_subagent can not be queued" in str(house.thinker.answers[-1])
    assert (house.posted, (await house.owner.get("/tasks")).json()["tasks"]) == ([], [])


@pytest.mark.req("POL-03", "AGT-05")
async def test_a_yes_to_an_agent_that_is_gone_is_refused_and_a_no_ends_it(home: Home) -> None:
    async with a_house(home) as house:
        await house.say(LETTER)
        (question,) = await house.asked()
        other = {"agents": [{"agentId": "other"}]}
        home.agents_file.write_text(json.dumps(other))
        await house.hub.agents._reload()
        refused = await house.answer(question["id"])
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found")
        assert "no agent annabelle" in refused.json()["error"]["message"]
        assert [one["state"] for one in await house.asked(None)] == ["pending"]
        assert (await house.answer(question["id"], "deny")).status_code == 200
        assert house.posted == []


@pytest.mark.req("POL-03")
async def test_an_agent_that_is_paused_between_the_yes_and_its_turn_makes_no_call(house: House) -> None:
    await house.say(LETTER)
    (question,) = await house.asked()
    inner = house.hub.agents.turn

    @asynccontextmanager
    async def paused_first(agent_id: str) -> AsyncGenerator[AgentRunner]:
        await house.hub.agents.pause(agent_id, "it costs too much")
        async with inner(agent_id) as runner:
            yield runner

    house.hub.agents.turn = paused_first  # type: ignore[method-assign]
    outcome = await house.outcome(await house.answer(question["id"]))
    assert "is paused: it costs too much" in str(outcome["reply"])
    assert (house.posted, [one["state"] for one in await house.asked(None)]) == ([], ["cancelled"])


@pytest.mark.req("POL-03", "TRU-06")
async def test_more_questions_than_a_page_lists_are_listed_answered_and_taken_back_at_once(house: House) -> None:
    await house.say(*({"to": "bob", "body": str(n)} for n in range(120)), together=True)
    listed = (await house.owner.get("/approvals", params={"state": "pending", "limit": 500})).json()["approvals"]
    assert len(listed) == 120
    for one in (listed[0], listed[60], listed[-1]):
        assert (await house.answer(one["id"])).json()["messageId"] is None
    stopped = await house.message("/stop")
    assert stopped["reply"]["text"] == "Stopped. 120 questions were taken back."
    listed = (await house.owner.get("/approvals", params={"limit": 500})).json()["approvals"]
    assert Counter(one["state"] for one in listed) == {"cancelled": 120}
    assert house.posted == []


@pytest.mark.req("POL-03", "TRU-06")
@pytest.mark.incident("I-27")
async def test_a_stop_while_a_question_is_being_asked_leaves_none_and_the_turn_is_over(house: House) -> None:
    stopping: list[asyncio.Task[httpx.Response]] = []

    async def stop() -> None:
        house.judge.while_judging = None
        stopping.append(asyncio.create_task(house.owner.post("/stop")))
        await asyncio.sleep(0)  # the stop has begun; the question is asked beside it

    house.judge.while_judging = stop
    said = await house.say(LETTER)
    stopped = await stopping[0]
    assert stopped.json()["halted"] == {"all": True, "agents": [], "parts": []}
    assert (house.posted, await house.asked()) == ([], [])
    twice = await house.owner.post("/stop")
    assert (twice.status_code, twice.json()["turns"]) == (200, 0)
    assert (await house.owner.post("/resume")).json()["message"] == "Everything goes on."
    assert {one["state"] for one in await house.asked(None)} <= {"cancelled"}
    assert (await house.message("hello", chat="other"))["reply"]["text"] == "You said: hello"
    assert (await house.owner.get(f"/messages/{said['messageId']}")).json()["state"] in ("done", "failed")
    assert house.posted == []
