"""Skills that do not run or fail, tasks that failed, a queue that grows, and conversations that are open."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, insert, update

from annabelle.core.messages import OWNER
from annabelle.store import skills, tasks, threads
from annabelle.store.tables import skills as skill_rows, tasks as task_rows, threads as thread_rows
from annabelle.store.tasks import NewTask
from hub.diagnosis.conftest import Examined
from hub.skills.house import House
from support.virtual_clock import VirtualClock

STEP = timedelta(seconds=1)


async def stop_schedule(house: House) -> None:
    await house.machine.components[-1].stop()


async def set_made(house: House, moment: datetime) -> None:
    changed = update(skill_rows).values(created_at=moment)
    await house.machine.hub.storage.database.write(lambda conn: conn.execute(changed))


@pytest.mark.req("DIA-01")
async def test_a_skill_that_is_silent_for_more_than_two_intervals_is_named(
    house: House, clock: VirtualClock, examine: Examined
) -> None:
    skill = await house.add_looking(interval_minutes=60)
    await house.run(timedelta(hours=3))
    assert await examine("stale-cron-jobs") == []
    await stop_schedule(house)
    (last,) = (await house.service.history(OWNER, skill.id, 1))[:1]
    clock.moment = last.due_at + timedelta(hours=2)
    assert await examine("stale-cron-jobs") == []
    clock.moment += STEP
    (found,) = await examine("stale-cron-jobs")
    assert (found.severity, found.subject) == ("warning", "look")


@pytest.mark.req("DIA-01")
@pytest.mark.parametrize(
    ("when", "patience"),
    [
        ({"interval_minutes": 15}, timedelta(hours=2)),
        ({"schedule": "0 6 * * *", "timezone": "UTC"}, timedelta(hours=6 + 24)),
    ],
)
async def test_a_skill_that_never_ran_is_named_once_it_should_have(
    house: House, clock: VirtualClock, examine: Examined, when: dict[str, object], patience: timedelta
) -> None:
    """Two hours after it was made; one that comes once a day has until the day after its first time."""
    clock.moment = datetime(2027, 3, 1, tzinfo=UTC)
    await stop_schedule(house)
    await house.add_looking(**when)
    await set_made(house, clock.now())
    made = clock.now()
    clock.moment = made + patience
    assert await examine("stale-cron-jobs") == []
    clock.moment += STEP
    assert await examine.severities("stale-cron-jobs") == ["warning"]


async def test_a_fire_that_was_written_down_and_never_begun_is_stale_too(
    house: House, clock: VirtualClock, examine: Examined
) -> None:
    skill = await house.add_looking(interval_minutes=60)
    await house.run(timedelta(hours=2))
    await stop_schedule(house)
    database = house.machine.hub.storage.database
    due = clock.now() + timedelta(hours=1)
    later = {"next_due": due + timedelta(days=9)}
    await database.write(lambda conn: skills.add_fires(conn, skill, [(due, "due")]))
    await database.write(lambda conn: skills.change_skill(conn, skill.id, later))
    clock.moment = due + timedelta(hours=1) + STEP
    assert await examine.severities("stale-cron-jobs") == ["warning"]


async def test_a_skill_that_is_off_or_was_switched_on_just_now_is_not_stale(
    house: House, clock: VirtualClock, examine: Examined
) -> None:
    skill = await house.add_looking(interval_minutes=15)
    await house.run(timedelta(hours=1))
    await stop_schedule(house)
    await house.service.update(skill.id, {"enabled": False}, OWNER, by_person=True)
    clock.moment += timedelta(days=30)
    assert await examine("stale-cron-jobs") == []
    await house.service.update(skill.id, {"enabled": True}, OWNER, by_person=True)
    assert await examine("stale-cron-jobs") == []


@pytest.mark.req("DIA-01")
async def test_a_skill_that_failed_last_is_named_until_it_works(house: House, examine: Examined) -> None:
    house.fails = 1
    await house.add_looking(interval_minutes=60)
    assert await examine("failed-cron-skills") == []
    await house.run(timedelta(minutes=60, seconds=30))
    assert [one.state for one in await house.fires()] == ["failed"]
    (found,) = await examine("failed-cron-skills")
    assert (found.severity, found.subject, found.action) == ("warning", "look", "/cron shows it.")
    await house.run(timedelta(minutes=5))
    assert await examine("failed-cron-skills") == []


@pytest.mark.req("DIA-01")
async def test_a_task_that_failed_in_the_last_six_hours_is_counted(
    house: House, clock: VirtualClock, examine: Examined
) -> None:
    def fail(conn: Connection) -> datetime:
        tasks.create_task(conn, NewTask("t1", "tool_call", OWNER, "look", {}))
        tasks.create_task(conn, NewTask("t2", "tool_call", OWNER, "look", {}))
        tasks.finish_task(conn, "t1", "failed", {})
        tasks.finish_task(conn, "t2", "done", {})
        return tasks.load_task(conn, "t1").finished_at or datetime.max.replace(tzinfo=UTC)

    assert await examine("failed-tasks") == []
    ended = await house.machine.hub.storage.database.write(fail)
    clock.moment = ended + timedelta(hours=6)
    (found,) = await examine("failed-tasks")
    assert (found.severity, found.text) == ("warning", "A task failed in the last six hours.")
    clock.moment += STEP
    assert await examine("failed-tasks") == []


@pytest.mark.req("DIA-01")
async def test_a_thousand_waiting_entries_are_worth_a_note(
    house: House, clock: VirtualClock, examine: Examined
) -> None:
    skill = await house.add_looking(interval_minutes=60)
    await stop_schedule(house)

    def fill(conn: Connection) -> None:
        rows = [
            {
                "id": f"t{number}",
                "kind": "tool_call",
                "state": "queued",
                "user_id": OWNER,
                "name": "x",
                "request": {},
                "created_at": clock.now(),
            }
            for number in range(998)
        ]
        conn.execute(insert(task_rows), rows)
        skills.add_fires(conn, skill, [(clock.now(), "due")])

    database = house.machine.hub.storage.database
    await database.write(fill)
    assert await examine("job-queue-depth") == []
    await database.write(lambda conn: tasks.create_task(conn, NewTask("one", "tool_call", OWNER, "look", {})))
    (found,) = await examine("job-queue-depth")
    assert found.severity == "info"
    assert found.text.startswith("1000 ")


@pytest.mark.req("DIA-01")
async def test_twenty_active_conversations_are_a_warning(house: House, clock: VirtualClock, examine: Examined) -> None:
    def open_chats(conn: Connection, names: range, channel: str = "api") -> None:
        for number in names:
            threads.find_or_create_thread(
                conn,
                channel=channel,
                chat_id=f"c{number}",
                user_id=OWNER,
                agent_id="annabelle",
                internal=channel == "skill",
            )
        conn.execute(update(thread_rows).values(updated_at=clock.now() - timedelta(minutes=30)))

    database = house.machine.hub.storage.database
    await database.write(lambda conn: open_chats(conn, range(19)))
    await database.write(lambda conn: open_chats(conn, range(5), channel="skill"))
    assert await examine("session-count") == [], "runs of skills are no conversations"
    await database.write(lambda conn: open_chats(conn, range(19, 20)))
    assert await examine.severities("session-count") == ["warning"]
    clock.moment += STEP
    assert await examine("session-count") == [], "idle for longer than a conversation lasts"
