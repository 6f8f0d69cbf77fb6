"""Sessions and archives in tables: in order, each once, and apart from each other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection

from annabelle.core.tools import JsonObject
from annabelle.store import sessions
from annabelle.store.database import Database

NOON = datetime(2026, 5, 3, 12, tzinfo=UTC)


def put(
    connection: Connection, name: str, hours: int = 0, *, agent: str = "tess", record: JsonObject | None = None
) -> None:
    sessions.add_archive(
        connection,
        f"{agent}:{name}",
        agent,
        record or {"name": name},
        thread_id="thr_1",
        user_id="owner",
        ended_at=NOON + timedelta(hours=hours),
    )


@pytest.mark.req("SES-03")
async def test_a_conversation_is_kept_once_and_found_in_the_order_of_its_end(db: Database) -> None:
    for name, hours in (("late", 5), ("early", 1), ("late", 9)):
        await db.write(lambda c, name=name, hours=hours: put(c, name, hours))
    await db.write(lambda c: put(c, "another's", agent="bob"))
    assert await db.read(lambda c: sessions.load_archives(c, "tess", "thr_1")) == [{"name": "early"}, {"name": "late"}]
    assert await db.read(lambda c: sessions.list_archive_ids(c, "tess", "thr_1")) == ["tess:early", "tess:late"]
    assert await db.read(lambda c: sessions.load_archives(c, "tess", "thr_2")) == []


@pytest.mark.req("SES-02")
async def test_records_that_are_moved_aside_stand_in_no_session_and_none_is_lost(db: Database) -> None:
    def fill(connection: Connection) -> None:
        sessions.append_session(connection, "tess", "thr_1", [{"n": number} for number in range(4)], user_id="owner")

    await db.write(fill)
    marks = await db.read(lambda c: sessions.list_session_threads(c, "tess"))
    rows = await db.read(lambda c: sessions.load_session(c, "tess", "thr_1"))
    await db.write(
        lambda c: sessions.move_records(c, [at for at, _record in rows[:2]], sessions.summarised_thread_id("thr_1"))
    )
    assert [record["n"] for _at, record in await db.read(lambda c: sessions.load_session(c, "tess", "thr_1"))] == [2, 3]
    aside = await db.read(lambda c: sessions.load_session(c, "tess", sessions.summarised_thread_id("thr_1")))
    assert [record["n"] for _at, record in aside] == [0, 1]
    changed = await db.read(lambda c: sessions.list_session_threads(c, "tess"))
    assert changed.keys() == marks.keys() == {"thr_1"}
    assert changed != marks
    await db.write(lambda c: sessions.remove_records(c, [at for at, _record in (*aside, *rows)]))
    assert await db.read(lambda c: sessions.list_session_threads(c, "tess")) == {}
