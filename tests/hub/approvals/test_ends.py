"""Every question ends in a state that can be seen: answered, run out, or taken back with what it was asked for."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from sqlalchemy import update

from annabelle.core.contract import TurnResult
from annabelle.core.errors import TurnCancelled
from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.core.secrets.forget_mask import ForgetMatcher
from annabelle.hub.agents.thinker_calls import ThinkerQuestions, failed_turn
from annabelle.hub.forgetting.forget_service import _mask_rows
from annabelle.store import approvals, memory_queue, tables
from annabelle.store.approvals import OpenQuestionFilter
from annabelle.store.text_removal import TextRemoval
from hub.approvals.house import House, a_house

LETTER = {"to": "bob", "body": "hello"}


async def _time_is_up(house: House) -> None:
    past = now() - timedelta(minutes=1)
    await house.hub.storage.database.write(lambda conn: conn.execute(update(tables.approvals).values(expires_at=past)))


@pytest.mark.req("POL-03")
@pytest.mark.incident("I-28")
async def test_an_answer_counts_once_and_the_second_one_is_told_how_the_first_was(house: House) -> None:
    await house.say(LETTER)
    (question,) = await house.asked()
    await house.outcome(await house.answer(question["id"]))
    for verdict in ("approve", "deny"):
        second = await house.answer(question["id"], verdict)
        assert (second.status_code, second.json()["error"]["code"]) == (409, "conflict")
        assert "was approved and carried out" in second.json()["error"]["message"]
    assert house.posted == [LETTER]


@pytest.mark.req("POL-03")
@pytest.mark.incident("I-28")
async def test_a_question_that_runs_out_says_so_in_its_thread_and_nothing_runs(house: House) -> None:
    said = await house.say(LETTER, LETTER | {"body": "second"}, together=True)
    question, other = await house.asked()
    await house.answer(other["id"])
    await _time_is_up(house)
    await house.hub.services.approvals.expiry.expire_due()
    assert [one["state"] for one in await house.asked(None)] == ["expired", "expired"]
    assert (await house.said(said["threadId"]))[-1] == (
        "agent",
        f"Nobody answered in time, so this was not done: post_letter ({question['id']}), post_letter ({other['id']}).",
    )
    late = await house.answer(question["id"])
    assert late.status_code == 409
    assert "ran out" in late.json()["error"]["message"]
    assert house.posted == []
    assert (
        await house.hub.storage.database.read(lambda conn: approvals.get_parked_turn(conn, str(said["messageId"])))
        is None
    )
    noted = await house.hub.storage.database.read(lambda conn: memory_queue.list_unstored_turns(conn, 9))
    assert [row.message_id for row in noted] == [said["messageId"]]


@pytest.mark.req("POL-03")
@pytest.mark.incident("I-28")
async def test_what_ran_out_while_nobody_was_there_is_ended_at_the_start(home: Home) -> None:
    async with a_house(home) as before:
        said = await before.say(LETTER)
        await _time_is_up(before)
    async with a_house(home) as after:
        assert [one["state"] for one in await after.asked(None)] == ["expired"]
        assert "Nobody answered in time" in (await after.said(said["threadId"]))[-1][1]


@pytest.mark.incident("I-28")
async def test_a_yes_that_comes_as_the_time_is_over_is_too_late(house: House) -> None:
    await house.say(LETTER)
    (question,) = await house.asked()
    await _time_is_up(house)
    late = await house.answer(question["id"])
    assert late.status_code == 409
    assert house.posted == []


async def _stop(house: House, said: dict[str, object]) -> None:
    answer = await house.message("/stop")
    assert answer["reply"]["text"] == "Stopped. 1 question was taken back."


async def _cancel(house: House, said: dict[str, object]) -> None:
    assert (await house.owner.post(f"/messages/{said['messageId']}/cancel")).status_code == 200


async def _clear(house: House, said: dict[str, object]) -> None:
    async def cleared(_thinking: ThinkerQuestions, _agent_id: str, _thread_id: str) -> None: ...

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ThinkerQuestions, "clear_session", cleared)  # the thinker here is played, and has no session
        assert (await house.owner.post(f"/threads/{said['threadId']}/clear")).status_code == 200


@pytest.mark.req("LOOP-09")
@pytest.mark.incident("I-28")
@pytest.mark.parametrize("end", [_stop, _cancel, _clear])
async def test_what_is_stopped_takes_its_question_back_and_says_so(
    house: House, end: Callable[[House, dict[str, object]], Awaitable[None]]
) -> None:
    said = await house.say(LETTER)
    elsewhere = await house.say(LETTER, chat="elsewhere")
    first, second = await house.asked()
    await end(house, said)
    states = {one["id"]: one["state"] for one in await house.asked(None)}
    assert states == {first["id"]: "cancelled", second["id"]: "pending"}
    told = [text for source, text in await house.said(said["threadId"]) if source == "agent"]
    assert any(f"so this was not done: post_letter ({first['id']})" in text for text in told)
    assert elsewhere["state"] == "done"
    late = await house.answer(first["id"])
    assert (late.status_code, "was taken back" in late.json()["error"]["message"]) == (409, True)
    assert house.posted == []


@pytest.mark.incident("I-28")
async def test_stopping_the_first_message_takes_back_what_its_turn_asked_later(house: House) -> None:
    said = await house.say(LETTER, LETTER | {"body": "second"})
    await house.outcome(await house.answer((await house.asked())[0]["id"]))
    assert [one["state"] for one in await house.asked(None)] == ["used", "pending"]
    await _cancel(house, said)
    assert [one["state"] for one in await house.asked(None)] == ["used", "cancelled"]


@pytest.mark.incident("I-28")
async def test_a_turn_that_fails_after_it_asked_takes_its_question_back(house: House) -> None:
    def fail() -> None:
        message_id = house.thinker.briefs[-1].message_id
        broken: TurnResult = failed_turn(message_id, TurnCancelled("The turn was stopped."))

        async def state(_message_id: str) -> object:
            house.thinker.results[message_id] = broken
            return await known(message_id)

        known = type(house.thinker).state.__get__(house.thinker)
        house.thinker.state = state  # type: ignore[method-assign,assignment]

    house.thinker.before_end = fail
    said = await house.say(LETTER)
    assert said["state"] == "failed"
    (question,) = await house.asked(None)
    assert question["state"] == "cancelled"
    notices = [event["data"]["text"] for event in await house.events(said["messageId"]) if event["type"] == "notice"]
    assert notices == [f"The question about post_letter ({question['id']}) was taken back."]


@pytest.mark.incident("I-28")
async def test_a_yes_is_taken_back_when_its_continuation_is_stopped_before_it_begins(house: House) -> None:
    await house.say(LETTER)
    (question,) = await house.asked()
    house.machine.hub.conversations.thread_queue.pause()
    going_on = (await house.answer(question["id"])).json()["messageId"]
    await house.owner.post(f"/messages/{going_on}/cancel")
    await house.machine.hub.conversations.thread_queue.unpause()
    assert [one["state"] for one in await house.asked(None)] == ["cancelled"]
    assert house.posted == []


@pytest.mark.req("TRU-09")
@pytest.mark.incident("I-28")
async def test_forgetting_takes_the_question_back_and_leaves_nothing_of_it(house: House) -> None:
    said = await house.say({"to": "bob", "body": "the Zürich vault 4711"})
    (question,) = await house.asked()
    sweep = TextRemoval(ForgetMatcher(("Zürich vault 4711",)), apply=True, user_id="owner")
    await house.hub.storage.database.write(lambda conn: _mask_rows(conn, sweep))
    (gone,) = await house.asked(None)
    assert gone["state"] == "cancelled"
    assert "4711" not in str(gone)
    row = await house.hub.storage.database.read(lambda conn: conn.execute(tables.approvals.select()).mappings().one())
    assert row["digest"] == "forgotten"
    assert "What it was about was forgotten" in (await house.said(said["threadId"]))[-1][1]
    assert (await house.answer(question["id"])).status_code == 409


@pytest.mark.req("AGT-05")
async def test_a_yes_to_a_paused_agent_is_refused_and_the_question_stays(house: House) -> None:
    await house.say(LETTER)
    (question,) = await house.asked()
    await house.hub.agents.pause("annabelle", "it costs too much")
    refused = await house.answer(question["id"])
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "agent_paused")
    assert [one["state"] for one in await house.asked(None)] == ["pending"]


@pytest.mark.req("POL-03", "TRU-08")
async def test_every_question_and_every_answer_is_in_the_audit(home: Home) -> None:
    async with a_house(home) as house:
        await house.say(LETTER)
        await house.outcome(await house.answer((await house.asked())[0]["id"], always=True))
        await house.say(LETTER)
        await house.outcome(await house.answer((await house.asked())[0]["id"], "deny"))
        await house.say(LETTER)
        await house.message("/stop")
        await house.say(LETTER)
        await _time_is_up(house)
        await house.hub.services.approvals.expiry.expire_due()
        await house.say({"to": "nobody"})
        ids = [one["id"] for one in await house.asked(None)]
    lines = [json.loads(line) for line in home.audit_file.read_text().splitlines()]
    noted = [line["facts"] for line in lines if line["kind"] == "approval"]
    events = [(fact["event"], fact.get("approval_id")) for fact in noted]
    first, second, third, fourth = ids
    assert events == [
        ("asked", first), ("approved", first), ("used", first), ("asked", second), ("denied", second),
        ("asked", third), ("cancelled", third), ("asked", fourth), ("expired", fourth), ("refused", None),
    ]  # fmt: skip
    assert [line["facts"]["event"] for line in lines if line["kind"] == "rule"] == ["allowed"]
    assert {(fact["tool"], fact["user_id"]) for fact in noted} == {("post_letter", "owner")}
    assert "hello" not in str(noted), "what was asked about is known by its call, not by its content"


@pytest.mark.req("MEM-12", "POL-03")
async def test_a_question_that_is_taken_back_wakes_the_memory(house: House) -> None:
    woken: list[str] = []
    await house.say(LETTER)
    house.hub.storage.events.subscribe(lambda events: woken.extend(event.key for event in events))
    outbox = house.hub.services.memory.outbox
    outbox._woken.clear()
    await house.hub.conversations.stopper.withdrawal.withdraw(OpenQuestionFilter(user_id="owner"), "You stopped it")
    assert (woken, outbox._woken.is_set()) == (["posted"], True)
