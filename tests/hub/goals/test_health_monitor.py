"""The monitor ends what hangs, tries again what waits and clears away what is over (AGE-10, DIA-05)."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from sqlalchemy import Connection, update

from annabelle.agents.task import queue_attempt
from annabelle.core.contract import TurnBrief, TurnResult
from annabelle.core.messages import OWNER, now
from annabelle.core.tools import JsonObject
from annabelle.hub.goals.health_monitor import NAME, HealthReport
from annabelle.hub.skills.skill_seeder import load_default_skills
from annabelle.store import claims, goals, tasks
from annabelle.store.tables import claims as claim_rows, goals as goal_rows
from annabelle.store.tasks import NewTask, TaskState
from hub.goals.house import GoalHouse
from support.virtual_clock import VirtualClock

MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock() -> VirtualClock:
    """Rows have the time of the machine, so this clock begins there."""
    return VirtualClock(now())


async def add_task(house: GoalHouse, goal_id: str, state: TaskState, created_at: datetime, **more: object) -> str:
    new = NewTask(
        id=f"task_{state}_{created_at.timestamp():.0f}",
        kind="goal",
        user_id=OWNER,
        name="Find teachers",
        request={"instructions": "x", "tools": [], "read_from": [], "origin_type": None},
        agent_id="annabelle",
        goal_id=goal_id,
        state="active",
    )

    def write(conn: Connection) -> str:
        task = tasks.create_task(conn, new, at=created_at)
        changes: JsonObject = {"state": state, **more}
        tasks.change_task(conn, task.id, changes)
        return task.id

    return await house.write(write)


@pytest.mark.req("AGE-10", "AGE-06")
@pytest.mark.parametrize(("minutes", "stopped"), [(29, 0), (31, 1)])
async def test_a_turn_that_hangs_for_half_an_hour_is_stopped_and_its_thread_freed(
    house: GoalHouse, minutes: int, stopped: int
) -> None:
    goal = await house.add()
    hangs, left = asyncio.Event(), asyncio.Event()
    original = house.thinker._turn

    async def turn(brief: TurnBrief) -> TurnResult:
        if brief.text == "hang":
            try:
                await hangs.wait()
            finally:
                left.set()
        return await original(brief)

    house.thinker._turn = turn
    await house.service.say(goal, "hang")
    await house.service.say(goal, "and then?")
    since = house.clock.now() - minutes * MINUTE
    await house.write(lambda conn: conn.execute(update(claim_rows).values(claimed_at=since)))
    report = await house.hub.services.upkeep.health.run()
    assert report.stuck == stopped
    assert left.is_set() == bool(stopped), "it does not go on beside the next one"
    if not stopped:
        hangs.set()
    await house.rest()
    answers = await house.in_goal(goal)
    assert any("You said: and then?" in text or text.startswith("Done") for text in answers)


@pytest.mark.req("AGE-10")
@pytest.mark.parametrize(("minutes", "state"), [(119, "active"), (121, "completed")])
async def test_a_task_nobody_works_on_is_over_after_two_hours(house: GoalHouse, minutes: int, state: str) -> None:
    goal = await house.add()
    task_id = await add_task(house, goal.id, "active", house.clock.now() - minutes * MINUTE)
    await house.write(lambda conn: goals.set_goal_state(conn, goal.id, "working"))
    report = await house.hub.services.upkeep.health.run()
    assert report.stale_tasks == (state == "completed")
    assert (await house.read(lambda conn: tasks.load_task(conn, task_id))).state == state
    assert (await house.goal(goal)).state == ("waiting" if state == "completed" else "working")


async def begin_work(house: GoalHouse, since: datetime) -> None:
    at_work = update(goal_rows).values(state="working", updated_at=since)
    await house.write(lambda conn: conn.execute(at_work))


@pytest.mark.req("AGE-10")
@pytest.mark.parametrize(("minutes", "state"), [(359, "working"), (361, "waiting")])
async def test_a_goal_nothing_is_done_for_waits_after_six_hours(house: GoalHouse, minutes: int, state: str) -> None:
    goal = await house.add()
    await begin_work(house, house.clock.now() - minutes * MINUTE)
    report = await house.hub.services.upkeep.health.run()
    assert report.stale_goals == (state == "waiting")
    assert (await house.goal(goal)).state == state


@pytest.mark.req("AGE-10")
async def test_a_goal_whose_turn_runs_does_not_wait(house: GoalHouse) -> None:
    goal, go_on = await house.add(), asyncio.Event()
    original = house.thinker._turn

    async def turn(brief: TurnBrief) -> TurnResult:
        await go_on.wait()
        return await original(brief)

    house.thinker._turn = turn
    await house.service.say(goal, "hello")
    await begin_work(house, house.clock.now() - timedelta(hours=7))
    report = await house.hub.services.upkeep.health.run()
    assert (report.stale_goals, (await house.goal(goal)).state) == (0, "working")
    go_on.set()
    await house.rest()
    assert (await house.goal(goal)).state == "waiting"


@pytest.mark.req("AGE-10", "AGE-13")
@pytest.mark.parametrize(("hours", "state"), [(23.9, "completed"), (24.1, "cancelled")])
async def test_a_paused_task_is_tried_again_and_expires_after_a_day(house: GoalHouse, hours: float, state: str) -> None:
    goal = await house.add()
    due = house.clock.now() - MINUTE
    task_id = await add_task(house, goal.id, "paused", house.clock.now() - timedelta(hours=hours), next_try_at=due)
    report = await house.hub.services.upkeep.health.run()
    await house.rest()
    assert (report.retried, report.expired) == ((1, 0) if state == "completed" else (0, 1))
    assert (await house.read(lambda conn: tasks.load_task(conn, task_id))).state == state


@pytest.mark.req("AGE-10", "AGE-13")
async def test_a_paused_task_waits_for_the_time_of_its_next_try(house: GoalHouse) -> None:
    goal = await house.add()
    due = house.clock.now() + MINUTE
    task_id = await add_task(house, goal.id, "paused", house.clock.now() - MINUTE, next_try_at=due)
    assert await house.hub.services.upkeep.health.run() == HealthReport()
    assert (await house.read(lambda conn: tasks.load_task(conn, task_id))).state == "paused"


@pytest.mark.req("AGE-10", "AGE-13")
async def test_a_task_that_was_paused_before_the_clock_was_set_back_is_tried_again(house: GoalHouse) -> None:
    goal = await house.add()
    then = house.clock.now() + timedelta(days=365)
    task_id = await add_task(house, goal.id, "paused", then, next_try_at=then + 5 * MINUTE)
    assert await house.hub.services.upkeep.health.run() == HealthReport(retried=1)
    await house.rest()
    assert (await house.read(lambda conn: tasks.load_task(conn, task_id))).state == "completed"


@pytest.mark.req("AGE-10")
async def test_an_old_task_that_waits_for_its_turn_is_not_ended(house: GoalHouse) -> None:
    goal = await house.add()
    task_id = await add_task(house, goal.id, "active", house.clock.now() - timedelta(hours=3))

    def queue(conn: Connection) -> str:
        return queue_attempt(conn, tasks.load_task(conn, task_id))

    thread_id = await house.write(queue)
    report = await house.hub.services.upkeep.health.run()
    assert report.stale_tasks == 0
    await house.hub.conversations.thread_queue.start_next(thread_id)
    await house.rest()
    done = await house.read(lambda conn: tasks.load_task(conn, task_id))
    assert (done.state, str((done.result or {})["text"])[:4]) == ("completed", "Done")


@pytest.mark.req("AGE-10")
@pytest.mark.parametrize(("days", "left"), [(14.9, 1), (15.1, 0)])
async def test_ended_tasks_are_cleared_away_after_fifteen_days(house: GoalHouse, days: float, left: int) -> None:
    goal = await house.add()
    at = house.clock.now() - timedelta(days=days)
    await add_task(house, goal.id, "completed", at - timedelta(days=30), finished_at=at)
    report = await house.hub.services.upkeep.health.run()
    assert report.removed == 1 - left
    assert len(await house.tasks(goal)) == left


@pytest.mark.req("AGE-10", "DIA-05")
async def test_the_monitor_runs_every_five_minutes_as_a_skill_and_keeps_its_history_short(house: GoalHouse) -> None:
    own = next(one for one in load_default_skills() if one["name"] == NAME)
    assert own["trigger_config"] == {"interval_minutes": 5}
    assert own["enabled"] is True
    machine = house.house.machine
    seeder = next(
        one.resume.__self__
        for one in machine.components
        if getattr(getattr(one.resume, "__self__", None), "seed_defaults", None) is not None
    )
    await seeder.seed_defaults()
    begun = house.clock.now()
    await house.house.run(timedelta(hours=3))
    fires = [one for one in await house.house.fires() if one.name == NAME]
    assert [one.due_at - begun for one in fires] == [count * 5 * MINUTE for count in range(1, 37)]
    await house.clock.jump(begun + timedelta(hours=25))
    await house.house.run(timedelta(hours=1))  # after a day in which the machine was off
    fires = [one for one in await house.house.fires() if one.name == NAME]
    assert fires[0].due_at - begun == timedelta(hours=2), "those of a day are kept"
    run = {one.due_at - begun for one in fires if one.state == "finished"}
    assert run >= {count * 5 * MINUTE for count in (*range(24, 37), *range(301, 313))}
    assert {one.state for one in fires} == {"finished", "missed"}
    assert not any("turns that hung" in text for text in await house.heard())


@pytest.mark.req("AGE-10")
def test_a_report_says_what_was_done_and_nothing_if_there_was_nothing_to_do() -> None:
    assert HealthReport().describe() == ""
    assert HealthReport(retried=2).describe() == "2 tasks were tried again."


@pytest.mark.req("AGE-06")
async def test_a_second_run_of_an_agent_waits_until_the_first_is_over(house: GoalHouse) -> None:
    goal = await house.add()
    gate = asyncio.Event()
    original = house.thinker._turn

    async def turn(brief: TurnBrief) -> TurnResult:
        await gate.wait()
        return await original(brief)

    house.thinker._turn = turn
    for text in ("first", "second"):
        await house.service.say(goal, text)
    await asyncio.sleep(0)
    held = await house.read(lambda conn: claims.list_held_claims(conn, now() + MINUTE))
    assert len(held) == 1
    assert held[0].owner
    gate.set()
    await house.rest()
    assert await house.read(lambda conn: claims.list_held_claims(conn, now() + MINUTE)) == []
    assert [one.text for one in house.thinker.briefs] == ["first", "second"]
