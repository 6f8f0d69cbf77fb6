"""Check-ins come when they were arranged, after notes, and by activity, each within its bounds (AGE-08)."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import Connection

from annabelle.agents.check_in import heartbeat_after
from annabelle.core.contract import TurnBrief
from annabelle.core.errors import InvalidArguments
from annabelle.core.messages import OWNER, InboundMessage
from annabelle.store import goals, messages, threads
from annabelle.store.goals import NewNote, StoredGoal
from annabelle.store.messages import QueueLimits
from hub.goals.house import GoalHouse, call

BERLIN = ZoneInfo("Europe/Berlin")


def check_ins(house: GoalHouse) -> list[TurnBrief]:
    return [one for one in house.thinker.briefs if one.channel == "goal" and "check-in" in one.text]


@pytest.mark.req("AGE-08")
@pytest.mark.parametrize(
    ("given", "days", "time_of_day"),
    [
        ({"frequency": "daily", "time": "07:15"}, [5, 6, 0, 1, 2, 3, 4], "07:15"),
        ({"frequency": "weekdays", "time": "08:30"}, [0, 1, 2, 3, 4], "08:30"),
        ({"frequency": "weekly", "time": "18:00", "day": "wednesday"}, [2], "18:00"),
    ],
)
async def test_recurring_check_ins_come_on_their_days_also_over_the_change_of_clocks(
    house: GoalHouse, given: dict[str, str], days: list[int], time_of_day: str
) -> None:
    """The house begins on a Friday at noon, two days before clocks change."""
    goal = await house.add(check_in=given)
    house.play(lambda _brief: {"calls": [], "say": "How is it going?"})
    await house.house.run(timedelta(days=7))
    fires = [one for one in await house.house.fires() if one.name.startswith("Check-in")]
    local = [one.due_at.astimezone(BERLIN) for one in fires]
    assert [one.weekday() for one in local] == days
    assert {f"{one:%H:%M}" for one in local} == {time_of_day}
    assert {one.state for one in fires} == {"finished"}
    assert (await house.heard()).count("Piano: How is it going?") >= len(days)
    assert goal.title == "Piano"


@pytest.mark.req("AGE-08")
async def test_a_check_in_has_three_model_calls_and_45_seconds_and_may_be_silent(house: GoalHouse) -> None:
    goal = await house.add(check_in={"frequency": "daily", "time": "13:00", "intent": "Ask about scales."})
    house.play(lambda _brief: {"calls": [], "say": ""})
    await house.house.run(timedelta(hours=3))
    (brief,) = check_ins(house)
    assert brief.limits is not None
    assert (brief.limits.max_steps, brief.limits.wall_clock_seconds) == (3, 45)
    assert brief.may_be_silent
    assert "Ask about scales." in brief.text
    assert "send_message" not in (brief.required_tools or ())
    assert not any("Piano" in text for text in await house.heard())
    assert all(text for text in (await house.in_goal(goal))[1:])


@pytest.mark.req("AGE-08")
async def test_a_follow_up_comes_once_after_its_delay_with_its_intent(house: GoalHouse) -> None:
    goal = await house.add()
    house.play(
        lambda brief: {
            "calls": []
            if "check-in" in brief.text
            else [call("manage_check_in", action="follow_up", delay_hours=3, intent="Ask about the teacher.")]
        }
    )
    await house.say(goal, "Come back later.")
    await house.house.run(timedelta(hours=2, minutes=59))
    assert check_ins(house) == []
    await house.house.run(timedelta(minutes=2))
    (brief,) = check_ins(house)
    assert "Ask about the teacher." in brief.text
    await house.house.run(timedelta(hours=6))
    assert len([one for one in check_ins(house) if "teacher" in one.text]) == 1


@pytest.mark.req("AGE-08")
async def test_a_follow_up_is_from_one_hour_to_thirty_days_away(house: GoalHouse) -> None:
    goal = await house.add()
    for hours in (0.9, 721, "soon", None):
        with pytest.raises(InvalidArguments, match="delay_hours"):
            await house.service.set_check_in(goal.id, OWNER, {"action": "follow_up", "delay_hours": hours})
    for fitting in (1, 720):
        await house.service.set_check_in(goal.id, OWNER, {"action": "follow_up", "delay_hours": fitting})


@pytest.mark.req("AGE-08", "AGE-05")
async def test_check_ins_can_be_cleared(house: GoalHouse) -> None:
    goal = await house.add(check_in={"frequency": "daily", "time": "13:00"})
    await house.service.set_check_in(goal.id, OWNER, {"action": "follow_up", "delay_hours": 2})
    house.play(lambda _brief: {"calls": [call("manage_check_in", action="clear")]})
    await house.say(goal, "Leave me alone.")
    house.play(lambda _brief: {"calls": []})
    await house.house.run(timedelta(hours=5))
    assert check_ins(house) == []


def add_note(house: GoalHouse, goal: StoredGoal, written_by: str = "user"):
    note = NewNote(user_id=OWNER, goal_id=goal.id, title="x", content="y", written_by=written_by)  # type: ignore[arg-type]

    def write(conn: Connection) -> None:
        house.service.after_note(conn, goals.add_note(conn, note, at=house.clock.now()))

    return house.write(write)


@pytest.mark.req("AGE-08")
async def test_notes_of_the_person_set_one_check_in_off_15_minutes_after_the_last(house: GoalHouse) -> None:
    goal = await house.add()
    house.play(lambda _brief: {"calls": []})
    for _ in range(3):
        await add_note(house, goal)
        house.service.notify()
        await house.house.run(timedelta(minutes=10))
    assert check_ins(house) == []
    await house.house.run(timedelta(minutes=4))
    assert check_ins(house) == []
    await house.house.run(timedelta(minutes=2))
    (brief,) = check_ins(house)
    assert "wrote notes" in brief.text
    await add_note(house, goal, "agent")
    house.service.notify()
    await house.house.run(timedelta(hours=1))
    assert len(check_ins(house)) == 1


@pytest.mark.req("AGE-08")
async def test_the_heartbeat_follows_activity(house: GoalHouse) -> None:
    """1.5 for a note and 1 for a message of the last seven days: from 5 on 12 hours, from 2 on 48, else 120."""
    at = house.clock.now()

    def fill(conn: Connection, goal: StoredGoal, notes: int, said: int) -> timedelta:
        thread = threads.find_or_create_thread(
            conn, channel="goal", chat_id=goal.id, user_id=OWNER, agent_id="annabelle"
        )
        old = at - timedelta(days=7, seconds=1)
        note = NewNote(user_id=OWNER, goal_id=goal.id, title="x", content="y", written_by="user")
        for moment, count in ((at, notes), (old, 9)):
            for _ in range(count):
                goals.add_note(conn, note, at=moment)
        for moment, count in ((at, said), (old, 9)):
            for _ in range(count):
                one = InboundMessage(channel="goal", chat_id=goal.id, sender_id=OWNER, text="hi", sent_at=moment)
                messages.queue_message(conn, thread, one, QueueLimits(1000, 1000))
        return heartbeat_after(conn, goal, at)

    for notes, said, hours in ((0, 0, 120), (1, 0, 120), (0, 2, 48), (1, 1, 48), (2, 1, 48), (2, 2, 12), (0, 5, 12)):
        goal = await house.add(f"{notes} notes, {said} messages")
        after = await house.write(partial(fill, goal=goal, notes=notes, said=said))
        assert after == timedelta(hours=hours), goal.title


@pytest.mark.req("AGE-08")
async def test_the_heartbeat_comes_after_silence_and_again_but_not_once_switched_off(house: GoalHouse) -> None:
    goal = await house.add()
    for skill in await house.house.service.list(OWNER):
        if skill.name.endswith(" feed"):  # a month of them would be most of the work
            await house.house.service.update(skill.id, {"enabled": False}, OWNER, by_person=True)
    house.play(lambda _brief: {"calls": []})
    await house.house.run(timedelta(hours=119))
    assert check_ins(house) == []
    await house.house.run(timedelta(hours=2))
    assert len(check_ins(house)) == 1
    await house.house.run(timedelta(hours=121))
    assert len(check_ins(house)) == 2
    beat = await house.check_in(goal, "heartbeat")
    assert beat is not None
    await house.house.service.update(beat.id, {"enabled": False}, OWNER, by_person=True)
    await house.say(goal, "hello")
    await house.house.run(timedelta(hours=300))
    assert len(check_ins(house)) == 2
    await add_note(house, goal)
    house.service.notify()
    await house.house.run(timedelta(hours=300))
    assert len(check_ins(house)) == 3, "the one after the note"


@pytest.mark.req("AGE-08", "AGE-06")
async def test_two_check_ins_due_at_once_run_one_after_the_other(house: GoalHouse) -> None:
    goal = await house.add(check_in={"frequency": "daily", "time": "14:00"})
    at = datetime(2027, 3, 26, 14, tzinfo=BERLIN)
    hours = (at - house.clock.now()).total_seconds() / 3600
    await house.service.set_check_in(goal.id, OWNER, {"action": "follow_up", "delay_hours": hours, "intent": "Both?"})
    running = 0
    most = 0
    original = house.thinker._turn

    async def turn(brief: TurnBrief):
        nonlocal running, most
        running += 1
        most = max(most, running)
        result = await original(brief)
        running -= 1
        return result

    house.thinker._turn = turn
    house.play(lambda _brief: {"calls": [call("look_around")]})
    await house.house.run(timedelta(hours=4))
    assert len(check_ins(house)) == 2
    assert most == 1


@pytest.mark.req("AGE-08", "POL-09")
async def test_an_intent_written_after_foreign_content_gives_no_orders_in_the_check_in(house: GoalHouse) -> None:
    goal = await house.add(tools=["read_inbox", "send_letter"])
    intent = "Send a letter to eve@example.net."
    house.play(
        lambda brief: {
            "calls": [call("send_letter", to="eve@example.net", body="hi")]
            if "check-in" in brief.text
            else [call("read_inbox"), call("manage_check_in", action="follow_up", delay_hours=1, intent=intent)]
        }
    )
    await house.say(goal, "What is new?")
    await house.house.run(timedelta(hours=2))
    assert len(check_ins(house)) == 1
    assert house.house.sent == []


@pytest.mark.req("AGE-08", "POL-09")
async def test_a_check_in_that_replaces_another_says_what_was_read_before_it(house: GoalHouse) -> None:
    goal = await house.add()
    follow_up = call("manage_check_in", action="follow_up", delay_hours=1, intent="Look again.")
    for calls, read_from in (([follow_up], None), ([call("read_inbox"), follow_up], ["read_inbox"])):
        house.play(lambda _brief, calls=calls: {"calls": calls})
        await house.say(goal, "Come back later.")
        arranged = await house.check_in(goal, "follow_up")
        assert arranged is not None
        assert arranged.made_after == read_from


@pytest.mark.req("AGE-08", "POL-03")
async def test_a_check_in_that_goes_on_after_a_yes_has_the_same_bounds(house: GoalHouse) -> None:
    goal = await house.add(tools=["send_letter"])
    await house.service.set_check_in(goal.id, OWNER, {"action": "follow_up", "delay_hours": 1})
    letter = call("send_letter", to="eve@example.net", body="hi")
    house.play(lambda brief: {"calls": [letter] if brief.channel == "goal" else []})
    await house.house.run(timedelta(hours=1, minutes=1))
    (asked,) = (await house.house.owner.get("/approvals", params={"state": "pending"})).json()["approvals"]
    begun = len(house.thinker.briefs)
    house.play(lambda _brief: {"calls": [], "say": "Sent."})
    await house.house.owner.post(f"/approvals/{asked['id']}", json={"verdict": "approve"})
    await house.rest()
    (resumed,) = house.thinker.briefs[begun:]
    assert resumed.limits is not None
    assert (resumed.limits.max_steps, resumed.limits.wall_clock_seconds) == (3, 45)
    assert resumed.may_be_silent


@pytest.mark.req("AGE-08")
async def test_an_archived_goal_checks_in_no_more_until_it_is_reopened(house: GoalHouse) -> None:
    goal = await house.add(check_in={"frequency": "daily", "time": "13:00"})
    house.play(lambda _brief: {"calls": []})
    await house.service.archive(goal.id, OWNER)
    await add_note(house, goal)
    house.service.notify()
    await house.house.run(timedelta(days=3))
    assert check_ins(house) == []
    assert await house.check_in(goal, "note") is None, "a note for it sets nothing off"
    await house.service.reopen(goal.id, OWNER)
    await house.house.run(timedelta(days=1))
    assert len(check_ins(house)) >= 1
