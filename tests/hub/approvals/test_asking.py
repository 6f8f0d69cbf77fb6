"""A turn that needs a yes: it ends with its question, waits without a process, and goes on with the answer."""

from __future__ import annotations

import asyncio

import pytest

from annabelle.core.home import Home
from annabelle.core.messages import OWNER
from annabelle.hub.memory.memory_outbox import _load_turn
from annabelle.store import approvals, claims, memory_queue
from hub.approvals.house import House, a_house
from support.timing import seconds


@pytest.mark.req("POL-03", "POL-07")
async def test_the_question_is_the_answer_and_nothing_is_held_while_it_waits(house: House) -> None:
    said = await house.say({"to": "mallory@example.com", "body": "hello"})
    (question,) = await house.asked()
    text = said["reply"]["text"]
    assert said["state"] == "done"
    assert said["reply"]["metadata"]["approvals"] == [question["id"]]
    for part in (
        "post letter",
        "mallory@example.com",
        "hello",
        "You did not name mallory@example.com.",
        question["id"],
    ):
        assert part in text
    kinds = [event["type"] for event in await house.events(said["messageId"])]
    assert kinds == ["approval", "message", "done"]
    asked, _message, done = await house.events(said["messageId"])
    assert asked["data"]["arguments"] == {"to": "mallory@example.com", "body": "hello"}
    assert asked["data"]["expires_at"]
    assert done["data"]["parked"] is True
    assert house.posted == []
    assert house.hub.conversations.turns.running == 0
    assert await house.hub.storage.database.read(lambda conn: claims.list_claims(conn, "hub")) == []
    assert (await house.message("and what about lunch?"))["reply"]["text"] == "You said: and what about lunch?"
    assert [one["state"] for one in await house.asked(None)] == ["pending"]


@pytest.mark.req("POL-03")
async def test_a_yes_makes_exactly_the_call_that_was_asked_about_once(house: House) -> None:
    said = await house.say({"to": "bob", "body": "hello"}, say="It is posted.")
    (question,) = await house.asked()
    answered = await house.answer(question["id"])
    outcome = await house.outcome(answered)
    assert outcome["reply"]["text"] == "It is posted."
    assert house.posted == [{"to": "bob", "body": "hello"}]
    (used,) = await house.asked(None)
    assert (used["state"], used["continuedBy"]) == ("used", answered.json()["messageId"])
    brief = house.thinker.briefs[-1]
    assert brief.resume is not None
    assert (brief.resume.message_id, brief.text) == (said["messageId"], house.thinker.briefs[0].text)
    assert brief.resume.parked.progress == {"steps": 1}
    sources = [source for source, _text in await house.said(said["threadId"])]
    assert sources == ["user", "agent", "decision", "agent"]
    assert (
        await house.hub.storage.database.read(lambda conn: approvals.get_parked_turn(conn, str(said["messageId"])))
        is None
    )


@pytest.mark.req("POL-03")
async def test_a_no_makes_no_call_and_the_same_call_is_not_asked_about_again(house: House) -> None:
    await house.say({"to": "bob"}, say="Then I leave it.")
    (question,) = await house.asked()
    answered = await house.answer(question["id"], "deny", note="Not today.")
    assert (await house.outcome(answered))["reply"]["text"] == "Then I leave it."
    resume = house.thinker.briefs[-1].resume
    assert resume is not None
    assert [(one.verdict, one.note) for one in resume.answers] == [("denied", "Not today.")]
    assert house.posted == []


@pytest.mark.req("POL-03")
async def test_a_no_holds_for_the_rest_of_the_turn(house: House) -> None:
    said = await house.say({"to": "bob"}, {"to": "bob"})
    (question,) = await house.asked()
    await house.outcome(await house.answer(question["id"], "deny"))
    assert house.thinker.answers[-1]["error"]["code"] == "not_allowed"
    assert "said no to exactly this call" in house.thinker.answers[-1]["error"]["message"]
    assert await house.asked() == []
    assert len(await house.said(said["threadId"])) == 4


@pytest.mark.req("POL-03")
async def test_changed_arguments_are_checked_first_and_then_made_instead(house: House) -> None:
    await house.say({"to": "bob", "body": "hello"})
    (question,) = await house.asked()
    for bad in ({"to": 5}, {"body": "no address"}, {"to": "bob", "bcc": "eve"}):
        refused = await house.answer(question["id"], arguments=bad)
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid_arguments")
    assert [one["state"] for one in await house.asked(None)] == ["pending"]
    await house.outcome(await house.answer(question["id"], arguments={"to": "bob", "body": "goodbye"}))
    assert house.posted == [{"to": "bob", "body": "goodbye"}]
    (used,) = await house.asked("used")
    assert (used["arguments"]["body"], used["edited"]["body"]) == ("hello", "goodbye")


@pytest.mark.req("POL-03")
async def test_several_questions_of_a_turn_are_all_answered_before_it_goes_on(house: House) -> None:
    await house.say({"to": "ann"}, {"to": "bob"}, {"to": "cid"}, together=True)
    first, second, third = await house.asked()
    for question, verdict in ((first, "approve"), (third, "deny")):
        waits = await house.answer(question["id"], verdict)
        assert waits.json()["messageId"] is None
    assert house.posted == []
    await house.outcome(await house.answer(second["id"]))
    assert house.posted == [{"to": "ann"}, {"to": "bob"}]
    assert [one["state"] for one in await house.asked(None)] == ["used", "used", "denied"]


@pytest.mark.req("POL-03")
async def test_a_turn_that_goes_on_can_ask_again_and_the_chain_keeps_its_root(house: House) -> None:
    said = await house.say({"to": "ann"}, {"to": "bob"})
    (first,) = await house.asked()
    outcome = await house.outcome(await house.answer(first["id"]))
    (second,) = await house.asked()
    assert outcome["reply"]["metadata"]["approvals"] == [second["id"]]
    await house.outcome(await house.answer(second["id"]))
    resume = house.thinker.briefs[-1].resume
    assert resume is not None
    assert resume.message_id == said["messageId"]
    assert house.posted == [{"to": "ann"}, {"to": "bob"}]


@pytest.mark.req("POL-03")
async def test_an_answer_given_before_the_turn_has_ended_carries_it_on_at_once(house: House) -> None:
    answered: list[asyncio.Task[object]] = []

    async def approve() -> object:
        (question,) = await house.asked()
        return await house.answer(question["id"])

    def quickly() -> None:
        if not answered:
            answered.append(asyncio.ensure_future(approve()))

    async def park(message_id: str) -> object:
        await asyncio.wait_for(answered[0], seconds(10))
        return await state(message_id)

    state = house.thinker.state
    house.thinker.before_end = quickly
    house.thinker.state = park  # type: ignore[method-assign,assignment]
    said = await house.say({"to": "bob"}, say="It is posted.")
    assert said["reply"]["text"] == "Approved: post_letter"
    resumed_by = (await house.asked(None))[0]["continuedBy"]
    outcome = (await house.owner.get(f"/messages/{resumed_by}", params={"wait": seconds(20)})).json()
    assert outcome["reply"]["text"] == "It is posted."
    assert house.posted == [{"to": "bob"}]


@pytest.mark.req("POL-07")
async def test_a_question_that_waited_for_hours_is_answered_after_a_restart_as_if_no_time_had_passed(
    home: Home,
) -> None:
    async with a_house(home) as before:
        await before.say({"to": "bob"})
        (question,) = await before.asked()
        asked_for = before.thinker.briefs[0]
    async with a_house(home) as after:
        assert after.thinker.briefs == [], "nobody works on a turn that waits"
        await after.outcome(await after.answer(question["id"]))
        (brief,) = after.thinker.briefs
        assert brief.resume is not None
        assert brief.resume.parked.progress == {"steps": 1}
        assert (brief.text, brief.limits, brief.token_budget) == (asked_for.text, None, None)
        assert after.posted == [{"to": "bob"}]


@pytest.mark.req("POL-03")
async def test_a_turn_is_remembered_when_it_is_over_and_not_as_its_question(house: House) -> None:
    def noted() -> object:
        return house.hub.storage.database.read(
            lambda conn: [row.message_id for row in memory_queue.list_unstored_turns(conn, 9)]
        )

    said = await house.say({"to": "bob"}, say="It is posted.")
    assert await noted() == []
    (question,) = await house.asked()
    answered = await house.answer(question["id"])
    await house.outcome(answered)
    assert await noted() == [answered.json()["messageId"]]
    (row,) = await house.hub.storage.database.read(lambda conn: memory_queue.list_unstored_turns(conn, 9))
    owned, turn = await house.hub.storage.database.read(lambda conn: _load_turn(conn, row, ""))
    assert (owned.message_id, owned.user_id) == (said["messageId"], OWNER)
    assert (turn.said, turn.answered) == (house.thinker.briefs[0].text, "It is posted.")
    assert turn.tools == ("post_letter",)
