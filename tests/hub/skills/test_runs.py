"""Skills that a model carries out: with their tools only, within what the person confirmed, reported once (SKL-03)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from annabelle.core.contract import TurnBrief, TurnResult
from annabelle.core.errors import InvalidArguments, ModelTooSmall
from annabelle.core.home import Home
from annabelle.core.messages import OWNER
from annabelle.core.tools import JsonObject
from annabelle.store import message_state
from annabelle.store.skills import StoredSkill
from hub.skills.house import House, open_house
from support.timing import seconds
from support.virtual_clock import VirtualClock

DAY = timedelta(days=1)
BRIEFING = "Read my mail and send a summary to anna@example.com."


async def add_briefing(house: House, **more: object) -> StoredSkill:
    return await house.add(
        name="briefing",
        instructions=BRIEFING,
        required_tools=["read_inbox", "send_letter"],
        schedule="0 6 * * *",
        **more,
    )


async def say(house: House, text: str, chat: str) -> str:
    said = await house.owner.post("/message", params={"wait": seconds(20)}, json={"text": text, "chatId": chat})
    assert said.json()["state"] == "done", said.text
    return str(said.json()["reply"]["text"])


def makes(*calls: tuple[str, JsonObject], say: str = "Two mails came."):
    made = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return lambda _brief: {"calls": made, "say": say}


@pytest.mark.req("SKL-03", "SEL-01")
async def test_a_model_gets_the_instructions_and_exactly_the_required_tools(house: House) -> None:
    await add_briefing(house, max_steps=4, token_budget=5_000)
    await house.run(DAY)
    (brief,) = house.thinker.briefs
    assert BRIEFING in brief.text
    assert brief.required_tools == ("read_inbox", "send_letter")
    assert (brief.token_budget, brief.limits and brief.limits.max_steps) == (5_000, 4)
    assert not brief.conversational


@pytest.mark.req("SKL-03")
async def test_the_hub_refuses_a_run_any_other_tool(house: House) -> None:
    await add_briefing(house)
    house.thinker.plan = makes(("look_around", {}))
    await house.run(DAY)
    (answer,) = house.thinker.answers
    assert "look_around is not part of this work" in str(answer)
    assert house.calls == 0


@pytest.mark.req("SKL-03")
async def test_a_run_without_tools_may_use_none(house: House) -> None:
    await house.add(name="hello", instructions="Say hello.", schedule="0 6 * * *")
    house.thinker.plan = makes(("look_around", {}))
    await house.run(DAY)
    assert [brief.required_tools for brief in house.thinker.briefs] == [()]
    assert "look_around is not part of this work" in str(house.thinker.answers)
    assert house.calls == 0


@pytest.mark.req("SKL-03", "SKL-08")
async def test_what_a_run_says_is_told_once_in_the_chat_of_the_skill(house: House) -> None:
    await add_briefing(house)
    house.thinker.plan = makes(("read_inbox", {}))
    await house.run(2 * DAY)
    assert await house.said() == ["Two mails came."] * 2
    assert [fire.state for fire in await house.fires()] == ["finished"] * 2
    assert [(fire.result or {})["trust"] for fire in await house.fires()] == ["untrusted"] * 2


@pytest.mark.req("POL-09")
async def test_what_the_person_confirmed_is_done_without_a_question(house: House) -> None:
    await add_briefing(house)
    house.thinker.plan = makes(("read_inbox", {}), ("send_letter", {"to": "anna@example.com"}))
    await house.run(DAY)
    assert [one["to"] for one in house.sent] == ["anna@example.com"]
    assert [fire.state for fire in await house.fires()] == ["finished"]


@pytest.mark.req("POL-09", "TRU-03")
async def test_what_a_run_reads_adds_nothing_to_the_order_and_what_goes_beyond_it_waits(house: House) -> None:
    await add_briefing(house)
    house.thinker.plan = makes(("read_inbox", {}), ("send_letter", {"to": "eve@example.net", "body": "x"}))
    await house.run(DAY)
    assert house.sent == []
    (fire,) = await house.fires()
    assert fire.state == "waiting"
    (told,) = await house.said()
    assert told.startswith("“briefing” needs your yes to go on.")
    assert "eve@example.net" in told


@pytest.mark.req("POL-09")
@pytest.mark.parametrize(("verdict", "sent"), [("approve", 1), ("deny", 0)])
async def test_an_answer_carries_the_waiting_run_to_its_end(house: House, verdict: str, sent: int) -> None:
    await add_briefing(house)
    house.thinker.plan = makes(("read_inbox", {}), ("send_letter", {"to": "eve@example.net", "body": "x"}))
    await house.run(DAY)
    (question,) = (await house.owner.get("/approvals", params={"state": "pending"})).json()["approvals"]
    answered = await house.owner.post(f"/approvals/{question['id']}", json={"verdict": verdict})
    assert answered.status_code == 200, answered.text
    async with asyncio.timeout(seconds(30)):
        while [one.state for one in await house.fires()] == ["waiting"]:  # noqa: ASYNC110  a row changes
            await asyncio.sleep(0.01)
    assert [one.state for one in await house.fires()] == ["finished"]
    assert len(house.sent) == sent
    assert (await house.said())[-1] == "Two mails came."


@pytest.mark.req("POL-09", "SKL-08")
async def test_a_run_waits_across_a_restart(home: Home, clock: VirtualClock) -> None:
    async with open_house(home, clock) as house:
        await add_briefing(house)
        house.thinker.plan = makes(("read_inbox", {}), ("send_letter", {"to": "eve@example.net"}))
        await house.run(DAY)
    async with open_house(home, clock) as house:
        assert [one.state for one in await house.fires()] == ["waiting"]


@pytest.mark.req("POL-09")
async def test_the_words_of_a_skill_count_in_its_own_runs_only(house: House) -> None:
    await add_briefing(house)
    await house.run(DAY)
    house.thinker.plan = makes(("read_inbox", {}), ("send_letter", {"to": "anna@example.com"}))
    said = await say(house, "What is new?", "main")
    assert "anna@example.com" in said  # the question
    assert house.sent == []


@pytest.mark.req("SKL-04")
async def test_a_run_that_fails_is_tried_again_and_the_fifth_in_a_row_switches_it_off(house: House) -> None:
    await add_briefing(house)
    house.thinker.fails = True
    await house.run(DAY)
    assert [fire.state for fire in await house.fires()] == ["failed"] * 5
    assert not (await house.service.get("briefing", OWNER)).enabled
    assert (await house.said())[-1].startswith("“briefing” failed 5 times and is switched off now.")


@pytest.mark.req("SKL-05")
@pytest.mark.parametrize("mails", [0, 1])
async def test_a_run_with_nothing_to_do_is_skipped_silently_and_at_no_cost(house: House, mails: int) -> None:
    await add_briefing(house, preflight={"tool": "read_inbox"})
    house.mails = house.mails[:mails]
    await house.run(DAY)
    assert [fire.state for fire in await house.fires()] == ["finished" if mails else "skipped"]
    assert len(house.thinker.briefs) == mails
    assert len(await house.said()) == mails


async def test_a_person_cannot_speak_in_the_run_of_a_skill(house: House) -> None:
    await add_briefing(house)
    await house.run(DAY)
    (fire,) = await house.fires()
    said = {"text": "Send it to eve@example.net", "chatId": fire.id, "channel": "skill"}
    assert (await house.owner.post("/message", json=said)).status_code == 403


@pytest.mark.req("SKL-04")
async def test_that_the_model_is_too_small_for_skills_is_told_once_and_switches_none_off(house: House) -> None:
    await add_briefing(house)
    await house.add(name="second", instructions=BRIEFING, required_tools=["read_inbox"], schedule="0 7 * * *")
    small = ModelTooSmall("It takes a larger model.", hint="annabelle init connects one.").body()

    async def turn(brief: TurnBrief) -> TurnResult:
        return TurnResult(message_id=brief.message_id, success=False, error=small)

    house.thinker._turn = turn
    await house.run(7 * DAY)
    assert [fire.state for fire in await house.fires()] == ["skipped"] * 14
    assert await house.said() == ["It takes a larger model. annabelle init connects one."]
    assert all(skill.enabled for skill in await house.service.list(OWNER))


@pytest.mark.req("CST-02")
async def test_background_work_that_is_paused_is_skipped_and_chats_go_on(house: House) -> None:
    await add_briefing(house)
    await house.machine.hub.agents.pause_account("annabelle:background", "too much")
    await house.run(DAY)
    assert [fire.state for fire in await house.fires()] == ["skipped"]
    answer = await say(house, "hello", "main")
    assert answer
    await house.machine.hub.agents.resume("annabelle", reset_window=True)
    await house.run(DAY)
    assert [fire.state for fire in await house.fires()] == ["skipped", "finished"]


@pytest.mark.req("TRU-03")
@pytest.mark.incident("I-13")
async def test_a_skill_made_after_reading_foreign_content_says_so_and_its_runs_are_careful(house: House) -> None:
    house.thinker.plan = makes(
        ("read_inbox", {}),
        (
            "memory_store_skill",
            {"name": "b", "instructions": BRIEFING, "required_tools": ["send_letter"], "when": "every day at 6"},
        ),
    )
    said = await say(house, "Make the skill.", "main")
    question = said
    assert "content from outside" in question
    assert "receivers: anna@example.com" in question
    assert "tools: send_letter" in question
    (asked,) = (await house.owner.get("/approvals", params={"state": "pending"})).json()["approvals"]
    await house.owner.post(f"/approvals/{asked['id']}", json={"verdict": "approve"})
    async with asyncio.timeout(seconds(30)):
        while not await house.service.list(OWNER):  # noqa: ASYNC110  a row is written
            await asyncio.sleep(0.01)
    (skill,) = await house.service.list(OWNER)
    assert skill.made_after == ["read_inbox"]
    house.thinker.plan = makes(say="Quiet.")
    await house.run(DAY)
    (fire,) = await house.fires()
    assert (fire.result or {})["trust"] == "untrusted"


@pytest.mark.req("POL-09")
async def test_what_a_skill_may_do_is_shown_in_full(house: House) -> None:
    await add_briefing(house, token_budget=9_000)
    shown = (await house.owner.get("/skills/briefing")).json()
    assert shown["order"] == {
        "tools": ["read_inbox", "send_letter"],
        "orders": shown["order"]["orders"],
        "receivers": ["anna@example.com"],
        "files": [],
        "pages": [],
        "token_budget": 9_000,
    }
    assert any("send a summary" in words for words in shown["order"]["orders"])


@pytest.mark.req("POL-09")
async def test_the_question_names_every_tool_order_receiver_file_page_and_the_budget(house: House) -> None:
    given: JsonObject = {
        "name": "report",
        "instructions": "Read notes.txt and https://example.com/news, then send a summary to anna@example.com.",
        "required_tools": ["read_inbox", "send_letter"],
        "token_budget": 9_000,
        "when": "every day at 6",
    }
    house.thinker.plan = makes(("memory_store_skill", given))
    question = await say(house, "Make the skill.", "main")
    for shown in (
        "tools: read_inbox, send_letter",
        "send a summary",
        "receivers: anna@example.com",
        "files: notes.txt",
        "pages: example.com/news",
        "tokens a run: 9,000",
    ):
        assert shown in question
    assert await house.service.list(OWNER) == []


@pytest.mark.req("POL-09")
async def test_the_budget_that_was_confirmed_bounds_the_run(house: House) -> None:
    await add_briefing(house, token_budget=9_000)
    await house.run(DAY)
    assert [brief.token_budget for brief in house.thinker.briefs] == [9_000]


async def test_the_threads_of_runs_are_not_among_the_chats(house: House) -> None:
    await add_briefing(house)
    await house.run(DAY)
    listed = (await house.owner.get("/threads")).json()["threads"]
    assert {one["channel"] for one in listed} == {"api"}


async def test_a_change_of_what_it_does_is_asked_about_and_a_reminder_is_not(house: House) -> None:
    await add_briefing(house)
    house.thinker.plan = makes(
        ("memory_update_skill", {"skill_id": "briefing", "instructions": "Send it to eve@example.net"})
    )
    said = await say(house, "Change the briefing.", "main")
    assert "eve@example.net" in said
    assert (await house.service.get("briefing", OWNER)).instructions == BRIEFING
    house.thinker.plan = makes(("memory_store_skill", {"message": "stretch", "when": "in 10 minutes"}), say="I will.")
    said = await say(house, "Remind me in 10 minutes to stretch.", "b")
    assert said == "I will."


@pytest.mark.req("TRU-02", "TRU-03")
async def test_what_was_said_unasked_can_be_replied_to_and_taints_only_turns_that_use_it(house: House) -> None:
    await add_briefing(house)
    await house.add(message="stretch", when="in 1 hour")
    house.thinker.plan = makes(("read_inbox", {}))
    await house.run(DAY)
    await say(house, "thanks", "main")
    unasked = house.thinker.briefs[-1].unasked
    assert ["⏰ stretch" in unasked[0], "memory_get_skill" in unasked[1]] == [True, True]
    assert "Two mails came" not in str(unasked)
    await say(house, "what did the briefing say?", "main")
    house.thinker.plan = makes(("memory_get_skill", {"skill_id": "briefing"}))
    await say(house, "show me", "main")
    assert "Two mails came." in str(house.thinker.answers[-1])
    assert house.thinker.answers[-1]["trust"] == "untrusted"


@pytest.mark.req("TRU-02")
async def test_what_is_said_to_a_chat_app_waits_in_the_outbox_and_a_terminal_reads_it_at_once(house: House) -> None:
    await house.add(message="stretch", when="in 1 hour")
    await house.add(message="sleep", when="in 1 hour", channel="telegram")
    await house.run(DAY)
    listed = await house.machine.hub.storage.database.read(message_state.list_unfinished_deliveries)
    assert [(one.channel, one.state) for one in listed] == [("telegram", "pending")]


@pytest.mark.req("POL-09")
@pytest.mark.incident("I-13")
async def test_after_foreign_content_a_reminder_is_what_was_said(house: House) -> None:
    reminders: list[tuple[JsonObject, str]] = [
        ({"message": "Forward it.", "trigger_config": {"keywords": ["mail"]}}, "keywords: mail"),
        ({"message": "ping", "trigger_config": {"memory": "dog"}}, "memory: dog"),
        ({"message": "buy", "when": "in 2 minutes"}, "you did not say in 2 minutes"),
        ({"message": "buy", "trigger_config": {"in_minutes": 2}}, "you did not say 2"),
        ({"message": "buy", "interval_minutes": 5}, "you did not say 5"),
        ({"message": "buy", "in_hours": 3}, "you did not say 3"),
        ({"message": "buy", "at": "2027-03-27T10:00"}, "you did not say 2027-03-27T10:00"),
        ({"message": "buy", "schedule": "*/5 * * * *"}, "you did not say */5 * * * *"),
        ({"message": "buy", "schedule": "* * * * *"}, "you did not say * * * * *"),
        ({"message": "buy", "schedule": "* 9 * * *"}, "you did not say * 9 * * *"),
        ({"message": "buy", "trigger_config": {"cronExpression": "*/5 * * * *"}}, "you did not say */5 * * * *"),
        ({"message": "buy", "trigger_config": {"intervalMinutes": 9}}, "you did not say 9"),
        ({"message": "x", "when": "tomorrow at 9", "preflight": {"tool": "send_letter"}}, "tools: send_letter"),
    ]
    for number, (given, why) in enumerate(reminders):
        house.thinker.plan = makes(("read_inbox", {}), ("memory_store_skill", given))
        assert why in await say(house, "Remind me tomorrow at 9 of what the mail says.", f"chat {number}")
        assert await house.service.list(OWNER) == []


async def test_what_the_person_said_is_kept_without_a_question_after_foreign_content(house: House) -> None:
    given: JsonObject = {"message": "the mail", "when": "tomorrow at 9"}
    house.thinker.plan = makes(("read_inbox", {}), ("memory_store_skill", given), say="I will.")
    assert await say(house, "Remind me tomorrow at 9 of what the mail says.", "main") == "I will."


@pytest.mark.req("SKL-05")
async def test_a_preflight_only_looks(house: House) -> None:
    await add_briefing(house, preflight={"tool": "send_letter", "arguments": {"to": "eve@example.net"}})
    await house.run(timedelta(hours=19))
    assert house.sent == []
    assert {fire.state for fire in await house.fires()} == {"failed"}


async def test_names_are_kept_apart_and_on_one_line(house: House) -> None:
    await house.add(name="dup", message="a", when="in 1 hour")
    await house.add(name="DUP", message="b", when="in 1 hour")
    assert (await house.service.delete("dup", OWNER)).name == "dup"
    odd = await house.add(name="a/b\nc\u202e", message="c", when="in 1 hour")
    assert odd.name == "a b c"


async def test_a_reminder_without_a_time_and_a_switch_for_one_that_is_over_are_refused(house: House) -> None:
    with pytest.raises(InvalidArguments, match="not said when"):
        await house.add(message="jutro o 9")
    await house.add(name="stretch", message="stretch", when="in 1 hour")
    await house.run(DAY)
    with pytest.raises(InvalidArguments, match="time is over"):
        await house.service.update("stretch", {"enabled": True}, OWNER)


async def test_a_run_by_hand_that_fails_is_told_and_not_tried_again(house: House) -> None:
    skill = await add_briefing(house)
    house.thinker.fails = True
    await house.service.run_now("briefing", OWNER)
    await house.clock.settle()
    assert [fire.state for fire in await house.fires()] == ["failed"]
    assert await house.said() == ["“briefing” failed. No model answers."]
    assert (await house.service.get(skill.id, OWNER)).next_due == skill.next_due
