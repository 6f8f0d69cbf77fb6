"""A call in the background that needs a yes: asked about before it is queued, and made once with the answer."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from annabelle.core.home import Home
from annabelle.core.tools import JsonObject
from hub.approvals.house import House, a_house
from support.timing import seconds


def queueing(parameters: JsonObject, tool: str = "post_letter") -> str:
    action = {"type": "tool_call", "toolName": tool, "parameters": parameters}
    arguments = {"name": "The letter", "action": action}
    return json.dumps({"calls": [{"name": "queue_task", "arguments": arguments}], "say": "It is queued."})


async def posted(house: House) -> list[JsonObject]:
    task = (await house.owner.get("/tasks")).json()["tasks"][0]
    await house.machine.hub.storage.durable.result(task["taskId"], 20)
    return house.posted


@pytest.mark.req("POL-03", "RTR-05")
async def test_a_queued_call_waits_for_the_yes_over_a_restart_and_is_then_made_once(home: Home) -> None:
    async with a_house(home) as first:
        said = await first.message(queueing({"to": "bob", "body": "hello"}))
        (question,) = await first.asked()
    assert "post_letter is to be called in the background. You did not name bob." in str(said["reply"])
    async with a_house(home) as house:
        answered = await house.answer(question["id"])
        assert (await house.outcome(answered))["reply"]["text"] == "It is queued."
        assert await posted(house) == [{"to": "bob", "body": "hello"}]
        assert [one["state"] for one in await house.asked(None)] == ["used"]


@pytest.mark.req("POL-03")
async def test_a_no_queues_nothing_and_a_never_is_not_asked_about(house: House) -> None:
    await house.message(queueing({"to": "bob"}))
    (question,) = await house.asked()
    await house.outcome(await house.answer(question["id"], "deny"))
    await house.message(queueing({"to": "nobody"}))
    assert "Your rule says: never." in house.thinker.answers[-1]["error"]["message"]
    assert (await house.asked(), house.posted) == ([], [])
    assert (await house.owner.get("/tasks")).json()["tasks"] == []


@pytest.mark.req("POL-03")
async def test_a_yes_with_changes_queues_what_the_person_wrote(house: House) -> None:
    await house.message(queueing({"to": "mallory"}))
    (question,) = await house.asked()
    changed = json.loads(queueing({"to": "bob"}))["calls"][0]["arguments"]
    await house.outcome(await house.answer(question["id"], arguments=changed))
    assert await posted(house) == [{"to": "bob"}]


@pytest.mark.req("POL-03")
async def test_nobody_is_asked_about_a_call_that_could_not_be_made(house: House) -> None:
    await house.message(queueing({"to": "bob", "colour": "red"}))
    assert house.thinker.answers[-1]["error"]["code"] == "invalid_arguments"
    await house.message(queueing({}, "post_parcel"))
    assert "no tool post_parcel that could be queued" in str(house.thinker.answers[-1])
    assert await house.asked() == []


async def waiting(house: House, letter: JsonObject) -> JsonObject:
    """The question of a letter that was free to be queued and is not free to be posted."""
    house.judge.only_when_made = True
    assert (await house.message(queueing(letter)))["reply"]["text"] == "It is queued."
    await posted(house)
    (question,) = await house.asked()
    return question


async def task_of(house: House) -> JsonObject:
    """The newest one."""
    return (await house.owner.get("/tasks")).json()["tasks"][0]


async def ended(house: House) -> JsonObject:
    """The newest task, once it is over."""
    async with asyncio.timeout(seconds(20)):
        while (task := await task_of(house))["state"] in ("queued", "running"):  # noqa: ASYNC110  the end is in the database
            await asyncio.sleep(0.02)
    return task


@pytest.mark.req("POL-03", "RTR-05")
async def test_what_needs_a_yes_only_when_it_is_made_is_asked_about_then_and_waits_over_a_restart(home: Home) -> None:
    async with a_house(home) as first:
        question = await waiting(first, {"to": "bob", "body": "hello"})
        task = await task_of(first)
        said = [text for _, text in await first.said(task["threadId"])]
        told = await first.events(question["messageId"])
    assert "The task “The letter” needs your yes before it goes on." in said
    assert any(text.startswith("May I call post letter?") and str(question["id"]) in text for text in said)
    assert [event["type"] for event in told] == ["message", "approval"]
    assert (task["state"], first.posted) == ("running", [])
    async with a_house(home) as house:
        house.judge.only_when_made = True
        answered = await house.answer(question["id"])
        assert (answered.json()["taskId"], answered.json()["messageId"]) == (task["taskId"], None)
        assert (await ended(house))["state"] == "done"
        assert house.posted == [{"to": "bob", "body": "hello"}]
        assert [one["state"] for one in await house.asked(None)] == ["used"]
        assert (await house.answer(question["id"])).status_code == 409


@pytest.mark.req("POL-03")
async def test_a_no_to_a_task_ends_it_and_a_yes_with_changes_is_what_is_made(house: House) -> None:
    question = await waiting(house, {"to": "mallory"})
    await house.answer(question["id"], arguments={"to": "bob"})
    assert ((await ended(house))["state"], house.posted) == ("done", [{"to": "bob"}])
    question = await waiting(house, {"to": "eve"})
    await house.answer(question["id"], "deny", note="Not to eve.")
    last = await ended(house)
    assert (last["state"], last["result"]) == (
        "failed",
        "The answer was no, so post_letter was not called. Not to eve.",
    )
    assert house.posted == [{"to": "bob"}]


@pytest.mark.req("POL-03", "TRU-06")
@pytest.mark.parametrize("end", ["stopped", "expired"])
async def test_a_task_whose_question_ends_unanswered_ends_with_it_and_stays_so(home: Home, end: str) -> None:
    async with a_house(home, approval_hours=0.0001 if end == "expired" else 24) as house:
        if end == "stopped":
            await waiting(house, {"to": "bob"})
            await house.owner.post("/stop", json={"target": "annabelle"})
        else:
            house.judge.only_when_made = True
            await house.message(queueing({"to": "bob"}))
        task = await ended(house)
        assert task["state"] == "failed"
        assert "so this was not done: post_letter" in str(task["result"])
        said = [text for _, text in await house.said(task["threadId"])]
        assert sum("so this was not done" in text for text in said) == 1
    async with a_house(home) as again:
        assert (await task_of(again), again.posted, await again.asked()) == (task, [], [])


@pytest.mark.req("POL-03", "I-04")
async def test_a_yes_that_was_written_down_before_the_hub_died_makes_the_call_at_the_next_start(home: Home) -> None:
    async with a_house(home) as first:
        question = await waiting(first, {"to": "bob"})

        async def died(_task_id: str) -> None: ...

        deciding = first.hub.services.approvals
        deciding._deps = replace(deciding._deps, tasks=SimpleNamespace(continue_task=died))
        await first.answer(question["id"])
        assert first.posted == []
    async with a_house(home) as house:
        house.judge.only_when_made = True
        assert ((await ended(house))["state"], house.posted) == ("done", [{"to": "bob"}])


@pytest.mark.req("POL-03")
async def test_a_yes_to_a_task_that_policy_forbids_by_now_makes_no_call(house: House) -> None:
    question = await waiting(house, {"to": "bob"})
    await house.answer(question["id"], arguments={"to": "nobody"})
    task = await ended(house)
    assert (task["state"], house.posted) == ("failed", [])
    assert "Your rule says: never." in str(task["result"])
    assert [one["state"] for one in await house.asked(None)] == ["cancelled"]


@pytest.mark.req("POL-03", "TRU-06")
async def test_a_stop_while_a_task_is_about_to_ask_leaves_no_question_behind(house: House) -> None:
    house.judge.only_when_made = True

    async def stop() -> None:
        house.judge.while_judging = None
        assert (await house.owner.post("/stop")).status_code == 200

    house.judge.while_judging = stop
    await house.message(queueing({"to": "bob"}))
    task = await ended(house)
    assert (task["state"], house.posted, await house.asked()) == ("failed", [], [])
    assert (await house.owner.post("/resume")).status_code == 200
    assert [one["state"] for one in await house.asked(None)] in ([], ["cancelled"])
