"""What changes under a goal at a bad moment: its agent is paused, its check-ins are edited, the clock is set back."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from annabelle.core.contract import TurnBrief, TurnResult
from annabelle.core.errors import NotFound, ProviderDown
from annabelle.core.home import Home
from annabelle.core.messages import OWNER
from annabelle.hub.security.users_file import add_user, remove_user
from annabelle.store import goals, skills, tasks
from annabelle.store.goals import StoredGoal
from annabelle.store.tasks import StoredTask
from hub.goals.house import GoalHouse, call
from hub.goals.test_check_ins import add_note, check_ins
from hub.goals.test_feed import item
from hub.goals.test_mishaps import fail_tasks
from hub.goals.test_tasks import delegate


async def pause(house: GoalHouse) -> None:
    (await house.house.owner.post("/agents/annabelle/pause", json={})).raise_for_status()


async def resume(house: GoalHouse) -> None:
    (await house.house.owner.post("/agents/annabelle/resume", json={})).raise_for_status()
    await house.house.run(timedelta(minutes=1))


async def follow_up(house: GoalHouse, goal: StoredGoal, hours: int = 1, intent: str = "first") -> None:
    given = {"action": "follow_up", "delay_hours": hours, "intent": intent}
    await house.service.set_check_in(goal.id, OWNER, given)


async def add_due_follow_up(house: GoalHouse) -> StoredGoal:
    """Its moment came while its agent was paused."""
    goal = await house.add()
    house.play(lambda _brief: {"calls": []})
    await follow_up(house, goal)
    await pause(house)
    await house.house.run(timedelta(hours=2))
    return goal


async def find_skill_id(house: GoalHouse, goal: StoredGoal, sort: str) -> int:
    found = await house.check_in(goal, sort)
    assert found is not None
    return found.id


def plan_feed(brief: TurnBrief, *more: dict[str, object]) -> dict[str, object]:
    shown = [call("generate_feed", items=[item("Chords")]), *more]
    return {"calls": shown if brief.channel == "user_agent" else [], "say": ""}


@pytest.mark.req("AGE-08", "SKL-08")
async def test_notes_of_many_days_while_an_agent_is_paused_set_one_check_in_off(house: GoalHouse) -> None:
    goal = await house.add()
    house.play(lambda _brief: {"calls": []})
    await pause(house)
    for _ in range(4):
        await add_note(house, goal)
        house.service.notify()
        await house.house.run(timedelta(days=1))
    await resume(house)
    assert len([one for one in check_ins(house) if "wrote notes" in one.text]) == 1
    assert len([one for one in check_ins(house) if "Nothing has happened" in one.text]) <= 1


@pytest.mark.req("AGE-08", "SKL-08")
async def test_a_follow_up_that_is_arranged_anew_while_it_waits_comes_once(house: GoalHouse) -> None:
    goal = await add_due_follow_up(house)
    await follow_up(house, goal, 24, "second")
    await resume(house)
    assert check_ins(house) == []
    await house.house.run(timedelta(hours=25))
    (brief,) = check_ins(house)
    assert "second" in brief.text


@pytest.mark.req("AGE-08", "SKL-08")
async def test_a_follow_up_that_is_switched_off_while_it_waits_does_not_come(house: GoalHouse) -> None:
    goal = await add_due_follow_up(house)
    known = await find_skill_id(house, goal, "follow_up")
    await house.house.service.update(known, {"enabled": False}, OWNER, by_person=True)
    await resume(house)
    assert check_ins(house) == []


@pytest.mark.req("AGE-08", "SKL-08")
@pytest.mark.parametrize("resumed_first", [True, False])
async def test_a_follow_up_that_waits_while_its_goal_is_archived_comes_once_it_is_reopened(
    house: GoalHouse, resumed_first: bool
) -> None:
    goal = await add_due_follow_up(house)
    await house.service.archive(goal.id, OWNER)
    if resumed_first:
        await resume(house)
    assert check_ins(house) == []
    await house.service.reopen(goal.id, OWNER)
    await house.house.run(timedelta(minutes=5))
    if not resumed_first:
        await resume(house)
    assert len(check_ins(house)) == 1


@pytest.mark.req("AGE-08")
async def test_a_follow_up_of_an_archived_goal_that_is_run_by_hand_is_not_over(house: GoalHouse) -> None:
    goal = await house.add()
    house.play(lambda _brief: {"calls": []})
    await follow_up(house, goal, 30)
    await house.service.archive(goal.id, OWNER)
    await house.house.service.run_now(await find_skill_id(house, goal, "follow_up"), OWNER)
    await house.house.ended()
    await house.service.reopen(goal.id, OWNER)
    await house.house.run(timedelta(hours=31))
    assert len(check_ins(house)) == 1


@pytest.mark.req("AGE-08", "SKL-04")
async def test_a_follow_up_that_a_failed_run_arranged_comes_at_its_time_and_once(house: GoalHouse) -> None:
    goal = await house.add()
    original, failed = house.thinker._turn, list[TurnBrief]()

    async def turn(brief: TurnBrief) -> TurnResult:
        done = await original(brief)
        if failed or brief.channel != "goal":
            return done
        failed.append(brief)
        return TurnResult(message_id=brief.message_id, success=False, error=ProviderDown("It is away.").body())

    house.thinker._turn = turn
    again = call("manage_check_in", action="follow_up", delay_hours=48, intent="second")
    house.play(lambda brief: {"calls": [again] if "first" in brief.text else []})
    await follow_up(house, goal)
    for hours, come in ((40, 0), (10, 1)):
        await house.house.run(timedelta(hours=hours))
        assert len([one for one in check_ins(house) if "second" in one.text]) == come


@pytest.mark.req("AGE-08", "SKL-09")
async def test_a_heartbeat_that_was_switched_off_can_be_switched_on_again(house: GoalHouse) -> None:
    goal = await house.add()
    house.play(lambda _brief: {"calls": []})
    beat = await find_skill_id(house, goal, "heartbeat")
    await house.house.service.update(beat, {"enabled": False}, OWNER, by_person=True)
    await house.house.run(timedelta(days=10))
    assert check_ins(house) == []
    await house.house.service.update(beat, {"enabled": True}, OWNER, by_person=True)
    await house.house.run(timedelta(minutes=1))
    assert len(check_ins(house)) == 1
    found = await house.check_in(goal, "heartbeat")
    assert found is not None
    assert found.next_due is not None


@pytest.mark.req("AGE-08", "SKL-08")
async def test_a_follow_up_of_an_agent_that_is_removed_while_it_is_paused_ends_and_is_told(
    house: GoalHouse, home: Home
) -> None:
    def configure(*names: str) -> None:
        home.agents_file.write_text(json.dumps({"agents": [{"agentId": one} for one in names]}))
        house.hub.agents.registry.reload_if_changed()

    configure("annabelle", "scout")
    goal = await house.add(agent_id="scout")
    await follow_up(house, goal)
    await house.hub.agents.pause_account("scout", "too expensive")
    await house.clock.jump(house.clock.now() + timedelta(hours=2))
    configure("annabelle")
    house.service.notify()
    await house.house.ended()
    assert any("“Follow-up: Piano” was not done" in one for one in await house.heard())


@pytest.mark.req("AGE-02", "AGE-09")
async def test_a_goal_can_be_made_and_renamed_whatever_other_skills_are_called(house: GoalHouse) -> None:
    for name in ("Morning feed", "heartbeat: organ", "Heartbeat: Organ (2)"):
        await house.house.add(name=name, instructions="Feed the cat.", schedule="0 7 * * *")
    goal = await house.add()
    await house.service.change(goal.id, OWNER, {"title": "Organ"})
    names = {one.name for one in await house.house.service.list(OWNER)}
    assert names >= {"Morning feed (2)", "Heartbeat: Organ (3)"}


@pytest.mark.req("AGE-02", "THR-03")
async def test_a_goal_is_found_by_its_number_and_by_no_other(house: GoalHouse) -> None:
    goal = await house.add()
    assert (await house.service.find("01", OWNER)).id == goal.id
    for other in ("0000000019", "9" * 5_000, "0", "²"):
        with pytest.raises(NotFound):
            await house.service.find(other, OWNER)


@pytest.mark.req("AGE-05")
async def test_the_agent_of_a_deleted_goal_gives_no_tasks(house: GoalHouse) -> None:
    goal = await house.add()
    original = house.thinker._turn

    async def turn(brief: TurnBrief) -> TurnResult:
        await house.write(lambda conn: goals.delete_goal(conn, goal.id))
        return await original(brief)

    house.thinker._turn = turn
    house.play(delegate)
    await house.say(goal)
    assert await house.read(lambda conn: tasks.list_tasks(conn, OWNER)) == []


@pytest.mark.req("AGE-13")
async def test_a_task_can_be_tried_again_very_often(house: GoalHouse) -> None:
    goal = await house.add()
    fail_tasks(house)
    await house.say(goal)
    (task,) = await house.tasks(goal)
    await house.write(lambda conn: tasks.reopen_task(conn, task.id, {"failures": 40, "state": "cancelled"}))
    await house.service.retry_task(task.id, OWNER)
    await house.rest()
    assert [one.state for one in await house.tasks(goal)] == ["cancelled"]


@pytest.mark.req("AGE-03", "POL-03")
async def test_a_task_that_goes_on_after_an_answer_is_at_work(house: GoalHouse) -> None:
    goal = await house.add(tools=["send_letter"])
    house.play(lambda brief: delegate(brief, does=[call("send_letter", to="a@example.net")]))
    await house.say(goal)
    (asked,) = (await house.house.owner.get("/approvals")).json()["approvals"]
    original, seen = house.thinker._turn, list[StoredTask]()

    async def turn(brief: TurnBrief) -> TurnResult:
        seen.extend(await house.tasks(goal))
        return await original(brief)

    house.thinker._turn = turn
    await house.house.owner.post(f"/approvals/{asked['id']}", json={"verdict": "approve"})
    await house.rest()
    assert [(one.state, one.waits_for_person) for one in seen] == [("active", False)]
    assert [one.state for one in await house.tasks(goal)] == ["completed"]


@pytest.mark.req("AGE-03", "AGE-05")
async def test_a_task_has_a_title_in_one_line_that_can_be_seen(house: GoalHouse) -> None:
    goal = await house.add()
    for title, shown in ((" \n ", "Task"), ("Find\nteachers ", "Find teachers")):
        given = call("create_task", title=title, instructions="Look.")
        house.play(lambda brief, task=given: delegate(brief, task))
        await house.say(goal)
        assert shown in [one.title for one in await house.notes(goal)]


@pytest.mark.req("AGE-09", "POL-03")
async def test_a_feed_that_goes_on_after_an_answer_tells_what_it_brought_before(house: GoalHouse) -> None:
    await house.add(tools=["send_letter"])
    house.play(lambda brief: plan_feed(brief, call("send_letter", to="a@example.net")))
    await house.house.run(timedelta(hours=3))
    (asked,) = (await house.house.owner.get("/approvals")).json()["approvals"]
    await house.house.owner.post(f"/approvals/{asked['id']}", json={"verdict": "approve"})
    await house.rest()
    assert (await house.heard())[-1] == "Chords\nLook at this."


@pytest.mark.req("AGE-09")
async def test_another_goal_leaves_the_feed_as_the_person_wants_it(house: GoalHouse) -> None:
    await house.add()
    await house.service.set_feed_times(OWNER, {"Evening": None, "Afternoon": "14:00"})
    await house.house.service.delete("Morning feed", OWNER)
    await house.add("Garden")
    times = await house.read(lambda conn: house.service.load_feed_times(conn, OWNER))
    assert times == {"Morning": None, "Afternoon": "14:00", "Evening": None}


@pytest.mark.req("AGE-09", "SKL-09")
async def test_the_schedule_of_a_feed_that_was_changed_as_a_skill_can_be_read(house: GoalHouse) -> None:
    await house.add()
    changes: list[tuple[dict[str, object], str]] = [
        ({"interval_minutes": 60}, "every hour"),
        ({"schedule": "*/5 8-10 * * *"}, "at */5 8-10 * * * (cron, Europe/Berlin)"),
        ({"schedule": "0 6 * * *"}, "06:00"),
    ]
    for given, shown in changes:
        await house.house.service.update("Morning feed", given, OWNER, by_person=True)
        assert (await house.house.owner.get("/feed/schedule")).json()["morning"] == shown


@pytest.mark.req("AGE-09", "SKL-04")
async def test_a_feed_whose_agent_was_removed_goes_on_with_that_of_another_goal(house: GoalHouse) -> None:
    first = await house.add(agent_id="scout")
    await house.add("Garden")
    house.play(plan_feed)
    await house.house.run(timedelta(days=1))
    assert any("“Morning feed” failed 5 times" in one for one in await house.heard())
    await house.service.archive(first.id, OWNER)
    await house.service.set_feed_times(OWNER, {"Morning": "08:00"})
    feed = await house.house.service.get("Morning feed", OWNER)
    assert (feed.agent_id, feed.failures, feed.disabled_why) == ("annabelle", 0, None)
    await house.house.run(timedelta(days=1))
    assert any("Chords" in one for one in await house.heard())


@pytest.mark.req("AGE-08", "SKL-08")
async def test_nothing_runs_for_a_person_who_was_removed_until_they_are_back(house: GoalHouse, home: Home) -> None:
    add_user(home.users_file, "bea")
    await house.add(user_id="bea", check_in={"frequency": "daily", "time": "13:00"})
    house.play(lambda _brief: {"calls": []})
    remove_user(home.users_file, "bea")
    await house.house.run(timedelta(hours=23))
    assert house.thinker.briefs == []
    add_user(home.users_file, "bea")
    await house.house.run(timedelta(hours=12))
    assert len(check_ins(house)) == 1


@pytest.mark.req("AGE-08", "SKL-08")
@pytest.mark.parametrize("back", [timedelta(hours=1), timedelta(days=365)])
async def test_check_ins_go_on_after_the_clock_was_set_back_and_none_comes_twice(
    house: GoalHouse, back: timedelta
) -> None:
    await house.add(check_in={"frequency": "daily", "time": "13:00"})
    house.play(lambda _brief: {"calls": []})
    await house.house.run(timedelta(hours=1, minutes=30))
    assert len(check_ins(house)) == 1
    await house.clock.jump(house.clock.now() - back)
    await house.house.run(timedelta(days=2))
    fires = [one for one in await house.house.fires() if one.name == "Check-in: Piano"]
    assert len({one.due_at for one in fires}) == len(fires) == 3
    assert {one.state for one in fires} == {"finished"}
    assert await house.read(skills.count_open_fires) == 0
