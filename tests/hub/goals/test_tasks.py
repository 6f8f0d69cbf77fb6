"""Tasks of goals: delegated, carried out in the background, ended with a note, tried again (AGE-03, AGE-07, AGE-13)."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from annabelle.core.contract import TurnBrief, TurnResult
from annabelle.core.errors import (
    AgentPaused,
    AgentStopped,
    AnnabelleError,
    NotAllowed,
    NotFound,
    ProviderDown,
    ProviderRefused,
)
from annabelle.core.messages import OWNER, InboundMessage
from annabelle.core.tools import JsonObject
from annabelle.store import goals, messages, tasks, threads
from annabelle.store.tasks import StoredTask
from hub.goals.house import GoalHouse, call

RESEARCH = call("create_task", title="Find teachers", instructions="Find three piano teachers nearby.")


def delegate(brief: TurnBrief, task: JsonObject = RESEARCH, does: list[JsonObject] | None = None) -> JsonObject:
    """The goal hands research on; the task does what it is told and reports."""
    if brief.channel == "task":
        return {"calls": does or [], "say": "Three teachers: Ann, Bo and Cy."}
    return {"calls": [task], "say": "I am on it."}


@pytest.mark.req("AGE-03", "AGE-01")
async def test_a_task_knows_the_goal_and_its_instructions_and_ends_with_a_note(house: GoalHouse) -> None:
    goal = await house.add(instructions="Be gentle.")
    house.play(delegate)
    await house.say(goal, "Find me a teacher.")
    brief = next(one for one in house.thinker.briefs if one.channel == "task")
    assert "Be gentle." in brief.instructions
    assert brief.text == "Find three piano teachers nearby."
    assert brief.sections == ()
    assert not brief.conversational
    assert brief.limits is not None
    assert (brief.limits.max_steps, brief.limits.wall_clock_seconds) == (20, 600)
    (note,) = await house.notes(goal)
    assert (note.title, note.content) == ("Find teachers", "Three teachers: Ann, Bo and Cy.")
    (task,) = await house.tasks(goal)
    assert task.state == "completed"
    assert any("Three teachers" in text and text.startswith("Piano:") for text in await house.heard())
    assert (await house.goal(goal)).state == "waiting"


@pytest.mark.req("AGE-03", "AGE-05")
async def test_a_task_has_its_parents_tools_and_none_of_its_own_to_talk_or_delegate(house: GoalHouse) -> None:
    goal = await house.add()
    tried = [
        call("send_message", message="hello"),
        call("create_task", title="x", instructions="y"),
        call("manage_learning", action="save", content="z"),
        call("send_letter", to="a@example.net"),
        call("look_around"),
    ]
    house.play(lambda brief: delegate(brief, does=tried))
    await house.say(goal, "Find me a teacher.")
    refused = [(answer.get("error") or answer).get("code") for answer in house.thinker.answers]
    assert refused.count(NotAllowed.code) == 4
    assert house.house.calls == 1


@pytest.mark.req("AGE-05", "AGE-03")
async def test_a_task_cannot_be_given_tools_that_its_parent_has_not(house: GoalHouse) -> None:
    goal = await house.add()
    wide = call("create_task", title="x", instructions="y", tools=["send_letter"])
    house.play(lambda brief: delegate(brief, wide))
    await house.say(goal)
    assert "may not have send_letter" in str(house.thinker.answers)
    assert await house.tasks(goal) == []
    narrow = call("create_task", title="x", instructions="y", tools=["look_around"])
    house.play(lambda brief: delegate(brief, narrow))
    await house.say(goal)
    brief = next(one for one in house.thinker.briefs if one.channel == "task")
    assert set(brief.required_tools or ()) == {"create_note", "emit_progress", "update_workspace", "look_around"}


@pytest.mark.req("AGE-03", "TRU-03")
async def test_what_a_task_read_from_outside_labels_its_note_and_what_it_says(house: GoalHouse) -> None:
    goal = await house.add()
    house.play(lambda brief: delegate(brief, does=[call("read_inbox")]))
    await house.say(goal)
    (note,) = await house.notes(goal)
    assert note.read_from == ["read_inbox"]


@pytest.mark.req("AGE-07")
async def test_only_the_agent_itself_has_the_type_of_its_run_and_a_task_has_it_as_origin(house: GoalHouse) -> None:
    goal = await house.add(check_in={"frequency": "daily", "time": "13:30"})
    house.play(delegate)
    await house.house.run(timedelta(hours=2))
    await house.rest()

    def load(conn) -> list[JsonObject]:
        found = messages.list_agent_turns(conn, "annabelle", 50)
        return [one.metadata | {"channel": one.channel} for one in found]

    runs = await house.read(load)
    of_goal = next(one for one in runs if one["channel"] == "goal")
    of_task = next(one for one in runs if one["channel"] == "task")
    assert of_goal["type"] == "agent_check_in"
    assert "type" not in of_task
    assert of_task["origin_type"] == "agent_check_in"
    assert (await house.tasks(goal))[0].request["origin_type"] == "agent_check_in"


async def errors_of(house: GoalHouse, task: StoredTask) -> list[JsonObject]:
    """What the errors in its thread tell of the next try, in order."""

    def load(conn) -> list[JsonObject]:
        thread = threads.find_open_thread(conn, channel="task", chat_id=task.id, user_id=OWNER, agent_id="annabelle")
        return [one.metadata for one in messages.list_messages(conn, thread.id, OWNER) if one.source == "error"]

    return await house.read(load)


@pytest.mark.req("AGE-13", "THR-05")
async def test_a_task_that_failed_is_paused_with_the_time_of_its_next_try_and_tried_again(house: GoalHouse) -> None:
    goal = await house.add()
    down = ProviderDown("The model is away.")
    fails, under_way = True, list[tuple[str, datetime | None]]()

    async def turn(brief: TurnBrief) -> TurnResult:
        if brief.channel == "task":
            under_way.extend((one.state, one.next_try_at) for one in await house.tasks(goal))
        if brief.channel == "task" and fails:
            return TurnResult(message_id=brief.message_id, success=False, error=down.body())
        return await original(brief)

    original, house.thinker._turn = house.thinker._turn, turn
    house.play(delegate)
    await house.say(goal)
    (task,) = await house.tasks(goal)
    assert task.state == "paused"
    assert task.next_try_at == house.clock.now() + timedelta(minutes=5)

    (told,) = await errors_of(house, task)
    assert told["retryable"] is True
    assert told["retry_at"] == task.next_try_at.isoformat()
    assert (told["attempt"], told["attempts"]) == (1, 5)

    await house.hub.services.upkeep.health.run()
    assert (await house.tasks(goal))[0].state == "paused"
    fails = False
    await house.clock.jump(task.next_try_at)
    report = await house.hub.services.upkeep.health.run()
    await house.rest()
    assert report.retried == 1
    assert under_way == [("active", None)] * 2
    assert (await house.tasks(goal))[0].state == "completed"
    assert len(await house.notes(goal)) == 1


@pytest.mark.req("AGE-13", "THR-05")
async def test_a_task_gives_up_after_five_failures(house: GoalHouse) -> None:
    goal = await house.add()
    down = ProviderDown("The model is away.")

    async def turn(brief: TurnBrief) -> TurnResult:
        if brief.channel == "task":
            return TurnResult(message_id=brief.message_id, success=False, error=down.body())
        return await original(brief)

    original, house.thinker._turn = house.thinker._turn, turn
    house.play(delegate)
    await house.say(goal)
    waits = []
    for _ in range(4):
        (task,) = await house.tasks(goal)
        assert task.next_try_at is not None
        waits.append(task.next_try_at - house.clock.now())
        await house.clock.jump(task.next_try_at)
        await house.hub.services.upkeep.health.run()
        await house.rest()
    assert waits == [timedelta(minutes=5 * 2**n) for n in range(4)]
    (task,) = await house.tasks(goal)
    assert task.state == "cancelled"
    told = await errors_of(house, task)
    assert [(one["attempt"], one["retryable"], "retry_at" in one) for one in told] == [
        *((attempt, True, True) for attempt in range(1, 5)),
        (5, False, False),
    ]
    assert any("was not finished" in text for text in await house.heard())


@pytest.mark.req("AGE-03")
async def test_a_goal_deleted_while_its_task_runs_ends_the_task(house: GoalHouse) -> None:
    goal = await house.add()
    house.play(delegate)
    original = house.thinker._turn
    started, deleted = asyncio.Event(), asyncio.Event()

    async def turn(brief: TurnBrief) -> TurnResult:
        if brief.channel == "task":
            started.set()
            await deleted.wait()
        return await original(brief)

    house.thinker._turn = turn
    await house.service.say(goal, "Find me a teacher.")
    await started.wait()
    await house.service.delete(goal.id, OWNER)
    deleted.set()
    await house.rest()
    assert await house.read(lambda conn: goals.list_notes(conn, OWNER)) == []
    assert await house.tasks(goal) == []


@pytest.mark.req("AGE-03")
async def test_a_cancelled_task_leaves_no_note(house: GoalHouse) -> None:
    goal = await house.add()
    house.play(delegate)
    original = house.thinker._turn

    async def turn(brief: TurnBrief) -> TurnResult:
        if brief.channel == "task":
            await house.service.cancel_task(brief.chat_id, OWNER)
        return await original(brief)

    house.thinker._turn = turn
    await house.say(goal)
    (task,) = await house.tasks(goal)
    assert task.state == "cancelled"
    assert await house.notes(goal) == []
    again = await house.service.retry_task(task.id, OWNER)
    assert again.state == "active"
    house.thinker._turn = original
    await house.rest()


@pytest.mark.req("AGE-03")
async def test_a_goal_has_at_most_five_tasks_at_once(house: GoalHouse) -> None:
    goal = await house.add()
    many = [call("create_task", title=f"t{n}", instructions="y") for n in range(6)]
    original = house.thinker._turn

    async def turn(brief: TurnBrief) -> TurnResult:
        if brief.channel == "task":
            return TurnResult(message_id=brief.message_id, success=False, error=ProviderDown("Away.").body())
        return await original(brief)

    house.thinker._turn = turn
    house.play(lambda _brief: {"calls": many})
    await house.say(goal)
    assert len(await house.tasks(goal)) == 5
    assert "5 tasks are under way" in str(house.thinker.answers[-1])


@pytest.mark.req("AGE-03", "AGE-05")
async def test_progress_of_a_task_is_shown_while_it_runs(house: GoalHouse) -> None:
    goal = await house.add()
    original, seen = house.thinker._turn, list[object]()
    house.play(lambda brief: delegate(brief, does=[call("emit_progress", message="Reading page 2")]))

    async def turn(brief: TurnBrief) -> TurnResult:
        result = await original(brief)
        if brief.channel == "task":
            seen.extend(one.result for one in await house.tasks(goal))
        return result

    house.thinker._turn = turn
    await house.say(goal)
    assert seen == [{"progress": "Reading page 2"}]
    task = (await house.tasks(goal))[0]

    def events(conn):
        thread = threads.find_open_thread(conn, channel="task", chat_id=task.id, user_id=OWNER, agent_id="annabelle")
        return [one.data for one in threads.list_events_after(conn, thread.id, OWNER)]

    assert any(data.get("progress") == "Reading page 2" for data in await house.read(events))


@pytest.mark.req("AGE-03")
async def test_nobody_can_write_into_a_task(house: GoalHouse) -> None:
    goal = await house.add()
    house.play(delegate)
    await house.say(goal)
    (task,) = await house.tasks(goal)
    said = InboundMessage(channel="task", chat_id=task.id, sender_id=OWNER, text="hello")
    with pytest.raises(NotAllowed):
        await house.hub.conversations.gate.receive(said)
    assert task.id not in [one.chat_id for one in await house.read(lambda conn: threads.list_threads(conn, OWNER))]


@pytest.mark.req("AGE-13")
async def test_tasks_of_others_are_not_found(house: GoalHouse) -> None:
    goal = await house.add()
    house.play(delegate)
    await house.say(goal)
    (task,) = await house.tasks(goal)
    for act in (house.service.retry_task, house.service.cancel_task):
        with pytest.raises(NotFound, match="no task"):
            await act(task.id, "mallory")


def end_tasks_with(house: GoalHouse, error: AnnabelleError) -> list[TurnBrief]:
    """Every attempt of a task fails so; returns those there were, which grow."""
    original = house.thinker._turn
    attempts: list[TurnBrief] = []

    async def turn(brief: TurnBrief) -> TurnResult:
        if brief.channel != "task":
            return await original(brief)
        attempts.append(brief)
        return TurnResult(message_id=brief.message_id, success=False, error=error.body())

    house.thinker._turn = turn
    return attempts


async def run_monitor(house: GoalHouse, hours: float) -> None:
    """The monitor every hour, or when a task is due where that is later, for so long."""
    until = house.clock.now() + timedelta(hours=hours)
    while (begun := house.clock.now()) < until:
        tries = [one.next_try_at for one in await house.read(lambda conn: tasks.list_tasks(conn, OWNER))]
        at = max([begun + timedelta(hours=1), *(one for one in tries if one)])
        await house.clock.jump(min(at, until))
        await house.hub.services.upkeep.health.run()
        await house.rest()


@pytest.mark.req("AGE-13", "CST-02", "THR-05")
async def test_a_task_that_may_not_spend_more_waits_for_days_and_uses_up_no_try(house: GoalHouse) -> None:
    goal = await house.add()
    original = house.thinker._turn
    attempts = end_tasks_with(house, AgentPaused("The budget of today is used up."))
    house.play(delegate)
    await house.say(goal)
    (task,) = await house.tasks(goal)
    assert task.next_try_at == house.clock.now() + timedelta(minutes=5)
    (told,) = await errors_of(house, task)
    assert (told["retryable"], told["retry_at"]) == (True, task.next_try_at.isoformat())
    await run_monitor(house, 36)
    (task,) = await house.tasks(goal)
    assert (task.state, task.failures) == ("paused", 0)
    own = [one.message_id for one in attempts if one.chat_id == task.id]
    assert 20 < len(own) < 35, "it looks again ever more rarely"
    assert len(set(own)) == len(own)
    house.thinker._turn = original
    await run_monitor(house, 2)
    (task,) = await house.tasks(goal)
    assert (task.state, task.failures) == ("completed", 0)
    assert len(await house.notes(goal)) == 1


@pytest.mark.req("AGE-13", "AGT-05")
async def test_a_failed_task_is_not_tried_again_while_its_agent_is_paused(house: GoalHouse) -> None:
    goal = await house.add()
    original = house.thinker._turn
    attempts = end_tasks_with(house, ProviderDown("The model is away."))
    house.play(delegate)
    await house.say(goal)
    await house.house.owner.post("/agents/annabelle/pause", json={})
    await run_monitor(house, 36)
    (task,) = await house.tasks(goal)
    assert (task.state, task.failures, len(attempts)) == ("paused", 0, 1)
    assert "is paused" in str(task.result)
    house.thinker._turn = original
    await house.house.owner.post("/agents/annabelle/resume", json={})
    await run_monitor(house, 0.5)
    (task,) = await house.tasks(goal)
    assert (task.state, task.failures) == ("completed", 1)


@pytest.mark.req("AGE-13", "AGT-05")
async def test_a_task_that_its_person_tries_while_its_agent_is_paused_waits_for_it(house: GoalHouse) -> None:
    goal = await house.add()
    house.play(delegate)
    end_tasks_with(house, ProviderRefused("No."))
    await house.say(goal)
    assert [one.state for one in await house.tasks(goal)] == ["cancelled"]
    await house.house.owner.post("/agents/annabelle/pause", json={})
    (task,) = await house.tasks(goal)
    await house.service.retry_task(task.id, OWNER)
    await house.rest()
    (task,) = await house.tasks(goal)
    assert (task.state, task.failures) == ("paused", 1)
    await run_monitor(house, 30)
    (task,) = await house.tasks(goal)
    assert (task.state, task.failures) == ("paused", 1)
    cancelled = await house.service.cancel_task(task.id, OWNER)
    assert cancelled.state == "cancelled"


@pytest.mark.req("AGE-13", "TRU-06")
async def test_a_task_of_a_stopped_agent_is_given_up(house: GoalHouse) -> None:
    goal = await house.add()
    end_tasks_with(house, AgentStopped("Its owner stopped it."))
    house.play(delegate)
    await house.say(goal)
    assert [one.state for one in await house.tasks(goal)] == ["cancelled"]
