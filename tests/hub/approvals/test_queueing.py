"""A call in the background that needs a yes: asked about before it is queued, and made once with the answer."""

from __future__ import annotations

import json

import pytest

from annabelle.core.home import Home
from annabelle.core.tools import JsonObject
from hub.approvals.house import House, a_house


def queueing(parameters: JsonObject, tool: str = "post_letter") -> str:
    action = {"type": "tool_call", "toolName": tool, "parameters": parameters}
    arguments = {"name": "The letter", "action": action}
    return json.dumps({"calls": [{"name": "queue_task", "arguments": arguments}], "say": "It is queued."})


async def posted(house: House) -> list[JsonObject]:
    (task,) = (await house.owner.get("/tasks")).json()["tasks"]
    await house.machine.durable.result(task["taskId"], 20)
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
