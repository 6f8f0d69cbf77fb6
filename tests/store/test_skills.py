"""Skills and fires on both engines."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection

from annabelle.core.errors import Conflict, NotFound
from annabelle.core.messages import OWNER
from annabelle.store import skills, threads
from annabelle.store.database import Database, make_engine
from annabelle.store.skills import NewSkill, StoredFire, StoredSkill
from support.timing import seconds

AT = datetime(2026, 11, 17, 6, tzinfo=UTC)


def add(conn: Connection, name: str = "look", **given: object) -> StoredSkill:
    thread = threads.find_or_create_thread(conn, channel="api", chat_id="main", user_id=OWNER, agent_id="a")
    new = NewSkill(
        user_id=OWNER, agent_id="a", thread_id=thread.id, name=name, description="", instructions="Look around.",
        trigger_type="cron", trigger={"at": AT.isoformat()}, plan={"tool": "t", "arguments": {}}, required_tools=[],
        max_steps=5, notify=True, notify_interval_minutes=0, missed="run", enabled=True, next_due=AT,
    )  # fmt: skip
    made = skills.add_skill(conn, new)
    return skills.update_skill(conn, made.id, given) if given else made


@pytest.mark.req("SKL-08")
async def test_two_connections_that_race_for_one_due_instant_make_one_fire(database_url: str, db: Database) -> None:
    skill = await db.write(add)
    # A file has one process; PostgreSQL may have several.
    other = db if database_url.startswith("sqlite") else await Database.open(database_url)
    try:

        def fire(conn: Connection) -> list[StoredFire]:
            return skills.add_fires(conn, skill, [(AT, "due")])

        made = await asyncio.gather(*(one.write(fire) for one in (db, other) for _ in range(5)))
        assert sum(map(len, made)) == 1
        (kept,) = await db.read(skills.list_open_fires)
        begun = await asyncio.gather(
            *(one.write(lambda conn: skills.begin_fire(conn, kept.id, AT)) for one in (db, other))
        )
        ended = await asyncio.gather(
            *(one.write(lambda conn: skills.finish_fire(conn, kept.id, "finished", {}, AT)) for one in (db, other))
        )
        assert [one is not None for one in begun].count(True) == 1
        assert sorted(ended) == [False, True]
    finally:
        if other is not db:
            await other.close()


@pytest.mark.req("SKL-08")
@pytest.mark.incident("I-23")
async def test_two_connections_of_their_own_that_race_for_due_instants_get_each_once(
    database_url: str, db: Database
) -> None:
    """Past the lock on the file, as if two hubs worked on it."""
    skill = await db.write(add)
    instants = [AT + timedelta(minutes=minute) for minute in range(20)]
    together = threading.Barrier(2)

    def race() -> list[str]:
        engine, won = make_engine(database_url), list[str]()
        try:
            for due in instants:
                together.wait(seconds(30))
                with engine.begin() as conn:
                    won += [fire.id for fire in skills.add_fires(conn, skill, [(due, "due")])]
        finally:
            engine.dispose()
        return won

    first, second = await asyncio.gather(asyncio.to_thread(race), asyncio.to_thread(race))
    assert sorted(first + second) == sorted(skills.make_fire_id(skill.id, due) for due in instants)
    assert len(await db.read(skills.list_open_fires)) == len(instants)


async def test_the_next_due_is_the_earliest_that_is_on(db: Database) -> None:
    await db.write(lambda conn: add(conn, "late", next_due=AT + timedelta(hours=2)))
    await db.write(lambda conn: add(conn, "off", next_due=AT - timedelta(hours=2), enabled=False))
    await db.write(lambda conn: add(conn, "early", next_due=AT + timedelta(hours=1)))
    assert await db.read(skills.next_due_at) == AT + timedelta(hours=1)
    due = await db.read(lambda conn: skills.list_due_skills(conn, AT + timedelta(hours=3), 10))
    assert [skill.name for skill in due] == ["early", "late"]


async def test_a_skill_is_found_by_number_name_or_words_of_its_own(db: Database) -> None:
    first = await db.write(lambda conn: add(conn, "Water the plants"))
    await db.write(lambda conn: add(conn, "Water bill"))
    await db.write(lambda conn: add(conn, "Take 77 pills"))

    async def find(named: str | int) -> str:
        return (await db.read(lambda conn: skills.find_skill(conn, named, OWNER))).name

    assert await find(first.id) == await find(str(first.id)) == await find("water the PLANTS") == "Water the plants"
    assert await find("plants") == "Water the plants"
    with pytest.raises(Conflict, match=r"Water the plants, Water bill|Water bill, Water the plants"):
        await find("water")
    for unknown in ("dentist", "77", "9" * 40):
        with pytest.raises(NotFound):
            await find(unknown)
    with pytest.raises(Conflict, match="already"):
        await db.write(lambda conn: add(conn, "Water bill"))


async def test_deleting_skips_what_has_not_begun_and_keeps_what_was(db: Database) -> None:
    skill = await db.write(add)
    later = AT + timedelta(days=1)
    fires = await db.write(lambda conn: skills.add_fires(conn, skill, [(AT, "missed"), (later, "due")]))
    assert [fire.state for fire in fires] == ["missed", "due"]
    await db.write(lambda conn: skills.delete_skill(conn, skill.id))
    kept = await db.read(lambda conn: skills.list_fires(conn, OWNER))
    assert [fire.state for fire in kept] == ["skipped", "missed"]
    assert await db.read(lambda conn: skills.load_skill(conn, skill.id)) is None
