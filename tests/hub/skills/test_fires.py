"""Skills that fire in a hub whose clock the test moves: each due instant ends once, and is told once (SKL-08)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from annabelle.core.errors import NotFound
from annabelle.core.home import Home
from annabelle.core.messages import OWNER
from annabelle.core.tools import CallContext, JsonObject
from annabelle.hub.tools.skills import skill_tools
from annabelle.language.templates import packaged_templates
from annabelle.store import skills
from annabelle.toolbox.middleware.argument_check import ArgumentChecker
from hub.skills.house import BEGIN, House, open_house
from support.virtual_clock import VirtualClock


@pytest.mark.req("SKL-01", "SKL-02", "SKL-09", "SKL-11")
async def test_a_reminder_is_told_once_when_it_is_due_and_is_over_then(house: House) -> None:
    skill = await house.add(message="stretch", when="in 10 minutes")
    await house.run(timedelta(minutes=9))
    assert await house.said() == []
    await house.run(timedelta(days=2))
    assert await house.said() == ["⏰ stretch"]
    assert [(fire.due_at, fire.state) for fire in await house.fires()] == [(BEGIN + timedelta(minutes=10), "finished")]
    assert not (await house.service.get(skill.id, OWNER)).enabled


@pytest.mark.req("SKL-01", "SKL-08")
async def test_what_comes_every_day_comes_at_the_same_hour_across_a_change_to_summer_time(house: House) -> None:
    await house.add_looking(schedule="0 6 * * *")
    await house.run(timedelta(days=4))
    assert [fire.due_at.hour for fire in await house.fires()] == [5, 4, 4, 4]
    assert await house.said() == ["All is quiet."] * 4


@pytest.mark.req("SKL-01", "SKL-09")
async def test_every_second_day_is_at_nine_before_and_after_the_clocks_change(house: House) -> None:
    skill = await house.add(message="water the plants", when="jeden zweiten Tag um 9")
    assert house.service.describe(skill) == "every 2 days at 09:00"
    await house.run(timedelta(days=5))
    assert [fire.due_at.hour for fire in await house.fires()] == [8, 7, 7]


@pytest.mark.req("SKL-09")
@pytest.mark.parametrize(
    ("when", "described"),
    [
        ("every other friday at 5pm", "every 2 weeks on Friday at 17:00"),
        ("on the 1st and 15th of every month at 10", "on day 1,15 of every month at 10:00"),
        ("am letzten Tag jedes Monats um 17 Uhr", "on the last day of every month at 17:00"),
        ("chaque année le 3 mai à 9h", "every year on 3 May at 09:00"),
        ("los martes y jueves a las 18:30", "every Tuesday and Thursday at 18:30"),
    ],
)
async def test_a_reminder_says_when_it_will_come(house: House, when: str, described: str) -> None:
    assert house.service.describe(await house.add(message="x", when=when)) == described


@pytest.mark.req("INT-01")
async def test_what_is_due_lists_what_is_switched_on_the_next_first(house: House) -> None:
    asked = packaged_templates().match("What is due?")
    assert asked is not None
    tool = next(tool for tool in skill_tools(house.service) if tool.name == asked.tool)
    ArgumentChecker().check(tool.spec(), {**asked.arguments})
    context = CallContext(caller="agent", user_id=OWNER)
    assert (await tool.handler({**asked.arguments}, context)).for_person.startswith("There are no reminders")
    await house.add(message="stretch", when="in 10 minutes")
    await house.add(message="call mum", when="tomorrow at 9")
    off = await house.add(message="sleep", when="every night")
    await house.service.update(off.id, {"enabled": False}, OWNER)
    told = (await tool.handler({**asked.arguments}, context)).for_person
    assert [line.split(" – ")[0] for line in told.splitlines()] == ["stretch", "call mum"]


@pytest.mark.req("SKL-08")
@pytest.mark.parametrize(
    ("policy", "states", "said"),
    [
        ("run", ["missed", "missed", "finished"], ["All is quiet."]),
        ("skip", ["missed"] * 3, []),
        ("list", ["missed"] * 3, ["“look” was missed: Saturday 2027-03-27 06:00, Sunday 2027-03-28 06:00, "
                                  "Monday 2027-03-29 06:00."]),
    ],
)  # fmt: skip
async def test_what_was_missed_while_the_machine_was_off(
    house: House, policy: str, states: list[str], said: list[str]
) -> None:
    await house.add_looking(schedule="0 6 * * *", if_missed=policy)
    await house.clock.jump(BEGIN + timedelta(days=3))
    assert [fire.state for fire in await house.fires()] == states
    assert await house.said() == said


@pytest.mark.incident("I-23")
async def test_what_was_missed_is_shown_in_the_history(house: House) -> None:
    await house.add_looking(schedule="0 6 * * *", if_missed="skip")
    await house.clock.jump(BEGIN + timedelta(days=3))
    await house.ended()
    listed = (await house.owner.get("/fires", params={"skill": "look"})).json()["fires"]
    assert [one["state"] for one in listed] == ["missed"] * 3


@pytest.mark.req("SKL-08", "DUR-01")
async def test_a_restart_loses_and_doubles_nothing(home: Home, clock: VirtualClock) -> None:
    async with open_house(home, clock) as house:
        await house.add_looking(schedule="0 6 * * *")
        await house.add(message="stretch", when="in 3 days")
        await house.run(timedelta(days=1))
    clock.moment += timedelta(days=1)
    async with open_house(home, clock) as house:
        await house.run(timedelta(days=2))
        fires = await house.fires()
        assert len({(fire.skill_id, fire.due_at) for fire in fires}) == len(fires) == 5
        assert {fire.state for fire in fires} == {"finished"}
        assert (await house.said()).count("⏰ stretch") == 1


@pytest.mark.req("SKL-04")
async def test_a_failure_is_tried_again_and_the_fifth_in_a_row_switches_off_and_says_so(house: House) -> None:
    house.fails = 9
    skill = await house.add_looking(at="2027-03-26T13:00")
    await house.run(timedelta(hours=6))
    first = datetime(2027, 3, 26, 12, tzinfo=UTC)
    minutes = [(fire.due_at - first).total_seconds() / 60 for fire in await house.fires()]
    assert minutes == [0, 1, 6, 21, 81]
    assert (await house.service.get(skill.id, OWNER)).disabled_why == "There is nothing to see."
    first_told, last_told = await house.said()
    assert first_told.startswith("“look” failed and is tried again.")
    assert last_told.startswith("“look” failed 5 times and is switched off now.")


@pytest.mark.req("SKL-04")
async def test_a_skill_that_tells_no_results_still_says_that_it_is_switched_off(house: House) -> None:
    house.fails = 9
    await house.add_looking(schedule="0 6 * * *", notify_on_completion=False)
    await house.run(timedelta(days=1))
    (told,) = await house.said()
    assert told.startswith("“look” failed 5 times and is switched off now.")


@pytest.mark.req("SKL-02")
async def test_no_model_is_asked_for_a_skill_of_one_call_whatever_comes_of_it(house: House) -> None:
    house.fails = 1
    await house.add_looking(schedule="0 6 * * *", instructions="Look around and tell me.")
    await house.run(timedelta(days=1))
    assert [fire.state for fire in await house.fires()] == ["failed", "finished"]
    assert house.thinker.briefs == []


@pytest.mark.req("SKL-11")
async def test_a_call_and_a_run_that_come_once_are_off_then(house: House) -> None:
    await house.add_looking(at="2027-03-26T13:00")
    await house.add(name="brief", instructions="Say hello.", required_tools=["look_around"], when="in 1 hour")
    await house.run(timedelta(days=2))
    assert [fire.state for fire in await house.fires()] == ["finished"] * 2
    assert [skill.enabled for skill in await house.service.list(OWNER)] == [False] * 2


@pytest.mark.req("SKL-04")
async def test_a_success_ends_the_count_of_failures(house: House) -> None:
    house.fails = 2
    skill = await house.add_looking(schedule="0 6 * * *")
    await house.run(timedelta(days=1))
    assert [fire.state for fire in await house.fires()] == ["failed", "failed", "finished"]
    assert (await house.service.get(skill.id, OWNER)).failures == 0


async def test_a_skill_that_is_off_or_deleted_fires_no_more_and_its_history_stays(house: House) -> None:
    skill = await house.add_looking(schedule="0 6 * * *")
    await house.run(timedelta(days=1))
    await house.service.update("look", {"enabled": False}, OWNER)
    await house.run(timedelta(days=1))
    assert len(await house.fires()) == 1
    await house.service.update("look", {"enabled": True}, OWNER)
    await house.service.delete(skill.id, OWNER)
    await house.run(timedelta(days=2))
    assert len(await house.fires()) == 1


async def test_a_skill_without_a_schedule_that_fails_says_so_and_stops_nothing(house: House) -> None:
    house.fails = 1
    await house.add_looking()
    await house.service.run_now("look", OWNER)
    await house.ended()
    await house.add(message="stretch", when="in 10 minutes")
    await house.run(timedelta(hours=1))
    assert await house.said() == ["“look” failed. There is nothing to see.", "⏰ stretch"]
    assert (await house.service.get("look", OWNER)).enabled


async def test_a_skill_can_be_run_by_hand_beside_its_schedule(house: House) -> None:
    await house.add_looking(schedule="0 6 * * *", enabled=False)
    await house.service.run_now("look", OWNER)
    await house.clock.settle()
    assert [fire.state for fire in await house.fires()] == ["finished"]


async def test_messages_are_no_more_frequent_than_asked_for(house: House) -> None:
    await house.add_looking(interval_minutes=10, notify_interval_minutes=60)
    await house.run(timedelta(hours=2))
    assert len(await house.fires()) == 12
    assert len(await house.said()) == 2


@pytest.mark.req("SKL-01")
async def test_a_skill_whose_schedule_can_not_be_read_is_switched_off_and_the_others_go_on(house: House) -> None:
    broken = await house.add(name="broken", message="x", schedule="0 6 * * *")
    await house.add_looking(schedule="0 7 * * *")
    gone: JsonObject = {"trigger": {"schedule": "0 6 * * *", "timezone": "Mars/Olympus"}}
    await house.machine.hub.storage.database.write(lambda conn: skills.update_skill(conn, broken.id, gone))
    await house.run(timedelta(days=1))
    assert "Mars/Olympus" in str((await house.service.get("broken", OWNER)).disabled_why)
    assert [(fire.name, fire.state) for fire in await house.fires()] == [("look", "finished")]


async def test_another_person_sees_and_changes_nothing(house: House) -> None:
    await house.add_looking(schedule="0 6 * * *")
    assert await house.service.list("guest") == []
    with pytest.raises(NotFound):
        await house.service.delete("look", "guest")


async def test_two_reminders_of_the_same_words_are_two_and_a_repeated_call_is_one(house: House) -> None:
    first = await house.add(message="stretch", when="in 10 minutes")
    again = await house.add(message="stretch", when="in 10 minutes")
    second = await house.add(message="stretch", when="in 20 minutes")
    assert (first.id, first.name, second.name) == (again.id, "stretch", "stretch (2)")
