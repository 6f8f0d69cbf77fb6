"""The database of one process, on both engines."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from sqlalchemy import Connection, insert, select, text
from sqlalchemy.exc import DBAPIError

from annabelle.core.errors import AlreadyRunning, ConfigMistake, StorageTrouble, Unavailable
from annabelle.store import cost_control
from annabelle.store.database import Database, sqlite_url
from annabelle.store.engine import make_engine, parse_url
from annabelle.store.file_lock import FileLock
from annabelle.store.portable_sql import JsonText, SafeText, UtcTimestamp
from annabelle.store.tables import sessions
from support.timing import seconds


def add(connection: Connection, number: int) -> None:
    row = {"agent_id": "a", "thread_id": "t", "user_id": "u", "record": {"n": number}}
    connection.execute(insert(sessions), row)


def numbers(connection: Connection) -> list[int]:
    return [row[0]["n"] for row in connection.execute(select(sessions.c.record).order_by(sessions.c.position))]


async def test_what_was_written_is_read_back(db: Database) -> None:
    await db.write(lambda c: add(c, 1))
    assert await db.read(numbers) == [1]


async def test_a_change_that_raises_leaves_nothing_behind(db: Database) -> None:
    def half(connection: Connection) -> None:
        add(connection, 1)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await db.write(half)
    await db.write(lambda c: add(c, 2))
    assert await db.read(numbers) == [2]


async def test_work_that_runs_out_of_items_fails_and_is_not_waited_for_for_ever(db: Database) -> None:
    for work in (db.read, db.write):
        with pytest.raises(RuntimeError):
            await asyncio.wait_for(work(lambda _conn: next(iter(()))), seconds(5))


async def test_a_read_can_not_change_anything(db: Database) -> None:
    with pytest.raises((StorageTrouble, DBAPIError)):
        await db.read(lambda c: add(c, 1))
    assert await db.read(numbers) == []


async def test_many_writers_at_once_lose_nothing(db: Database) -> None:
    def grow(connection: Connection) -> None:
        connection.execute(text("UPDATE sessions SET user_id = CAST(CAST(user_id AS INTEGER) + 1 AS TEXT)"))

    await db.write(
        lambda c: c.execute(insert(sessions), {"agent_id": "a", "thread_id": "t", "user_id": "0", "record": {}})
    )
    async with asyncio.TaskGroup() as group:
        for _ in range(60):
            group.create_task(db.write(grow))
    assert await db.read(lambda c: c.execute(select(sessions.c.user_id)).scalar()) == "60"


async def test_reads_go_on_while_a_write_is_open(db: Database) -> None:
    inside, leave = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        add(connection, 1)
        inside.set()
        assert leave.wait(seconds(10))

    writing = asyncio.create_task(db.write(slow))
    assert await asyncio.to_thread(inside.wait, 10)
    assert await db.read(numbers) == []  # the state before, without waiting
    leave.set()
    await writing
    assert await db.read(numbers) == [1]


async def test_a_deadlock_on_postgresql_is_tried_again(postgres_url: str) -> None:
    db = await Database.open(postgres_url)
    for number in (1, 2):
        await db.write(lambda c, n=number: add(c, n))
    meet = threading.Barrier(2)

    def cross(first: int, second: int) -> None:
        tries = []

        def change(connection: Connection) -> int:
            tries.append(1)
            for number in (first, second):
                connection.execute(text("UPDATE sessions SET user_id = 'x' WHERE position = :n"), {"n": number})
                if number == first and len(tries) == 1:
                    meet.wait(seconds(10))
            return len(tries)

        return change

    tries = await asyncio.gather(db.write(cross(1, 2)), db.write(cross(2, 1)))
    assert max(tries) > 1  # at least one was the victim, and both are through
    await db.close()


@pytest.mark.req("DUR-07")
@pytest.mark.incident("I-22")
async def test_a_second_owner_of_a_file_is_turned_away_and_told_who_has_it(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "annabelle.db")
    db = await Database.open(url)
    with pytest.raises(AlreadyRunning, match=rf"annabelle\.db is in use by process {os.getpid()}\."):
        await Database.open(url)
    await db.close()
    await (await Database.open(url)).close()


CHILD = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from annabelle.store.database import Database, sqlite_url
from sqlalchemy import insert
from annabelle.store.tables import sessions

async def main():
    db = await Database.open(sys.argv[1])
    for number in range(10_000):
        row = {{"agent_id": "a", "thread_id": "t", "user_id": "u", "record": {{"n": number}}}}
        await db.write(lambda c: c.execute(insert(sessions), row))
        print(number, flush=True)

asyncio.run(main())
"""


def write_until_killed(database_url: str) -> int:
    """The last commit that a process reported before it was killed in the middle of the next ones."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(tests=str(Path(__file__).parent.parent)), database_url],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    last = -1
    for line in child.stdout:
        last = int(line)
        if last == 50:
            child.send_signal(signal.SIGKILL)
    child.wait(seconds(10))
    child.stdout.close()
    return last


@pytest.mark.incident("I-22")
async def test_killing_the_owner_releases_the_file_and_keeps_every_commit(database_url: str) -> None:
    last = write_until_killed(database_url)
    db = await Database.open(database_url)
    found = await db.read(numbers)
    assert found == list(range(len(found)))  # no hole
    assert len(found) > last  # nothing that was reported is missing
    assert await db.problems() == []
    await db.close()


@pytest.mark.incident("I-22")
async def test_a_clean_close_folds_the_wal_into_the_file(tmp_path: Path) -> None:
    file = tmp_path / "annabelle.db"
    db = await Database.open(sqlite_url(file))
    await db.write(lambda c: add(c, 1))
    assert file.with_name("annabelle.db-wal").stat().st_size > 0
    await db.close()
    await db.close()
    with pytest.raises(Unavailable, match="is closed"):
        await db.write(lambda c: add(c, 2))
    assert sorted(os.listdir(tmp_path)) == ["annabelle.db", "annabelle.db.lock"]


async def test_sqlite_is_set_up_to_survive_a_kill(tmp_path: Path) -> None:
    db = await Database.open(sqlite_url(tmp_path / "annabelle.db"), synchronous="FULL")
    names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
    found = await db.write(lambda c: [c.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names])
    assert found == ["wal", 2, 1, 10_000]
    await db.close()


def test_a_lock_that_was_released_can_be_taken_again(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "x.db"), FileLock(tmp_path / "x.db")
    first.acquire()
    with pytest.raises(AlreadyRunning):
        second.acquire()
    first.release()
    second.acquire()
    second.release()


def test_a_lock_in_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(StorageTrouble, match="can not be opened: No such file or directory"):
        FileLock(tmp_path / "nowhere" / "x.db").acquire()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://x/y", "mysql:// *, which is not supported"),
        ("not an address", "not a database address"),
        ("sqlite://", "not supported"),
    ],
)
def test_an_address_that_can_not_work_is_named(url: str, words: str) -> None:
    with pytest.raises(ConfigMistake) as caught:
        parse_url(url)
    assert words.split(" *")[-1] in caught.value.message
    assert caught.value.field == "DATABASE_URL"


def test_a_plain_postgresql_address_gets_our_driver() -> None:
    assert parse_url("postgresql://ada@db/x").drivername == "postgresql+psycopg"


async def test_an_unreachable_server_is_named_without_its_password() -> None:
    with pytest.raises(Unavailable) as caught:
        await Database.open("postgresql://ada:lovelace@127.0.0.1:1/x")
    assert "127.0.0.1:1 can not be reached" in caught.value.message
    assert "lovelace" not in caught.value.message


async def test_times_come_back_aware_and_the_same(db: Database) -> None:
    paused = await db.write(lambda c: cost_control.pause_agent(c, "a", "why"))
    found = await db.read(lambda c: cost_control.get_agent_state(c, "a"))
    assert found == paused
    assert found.paused_at is not None
    assert found.paused_at.utcoffset() == timedelta(0)


def test_a_time_is_stored_as_iso_text_in_utc() -> None:
    dialect = make_engine("sqlite:////tmp/never-opened.db").dialect
    noon = datetime(2026, 5, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    assert UtcTimestamp().process_bind_param(noon, dialect) == "2026-05-01T12:00:00.000000+00:00"
    assert UtcTimestamp().process_result_value("2026-05-01T12:00:00.000000+00:00", dialect) == noon.astimezone(UTC)
    with pytest.raises(ValueError, match="without a zone"):
        UtcTimestamp().process_bind_param(datetime(2026, 5, 1), dialect)


@settings(max_examples=200)
@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_stored_and_honest_text_is_not_changed(value: str) -> None:
    dialect = make_engine("sqlite:////tmp/never-opened.db").dialect
    kept = SafeText().process_bind_param(value, dialect)
    assert kept is not None
    kept.encode()
    assert "\x00" not in kept
    if "\x00" not in value and not any(0xD800 <= ord(char) <= 0xDFFF for char in value):
        assert kept == value


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(st.characters(codec=None)), st.lists))
def test_any_json_comes_back_as_it_was(value: object) -> None:
    dialect = make_engine("sqlite:////tmp/never-opened.db").dialect
    kept = JsonText().process_bind_param(value, dialect)
    if value is not None:
        assert kept is not None
        kept.encode()
    assert JsonText().process_result_value(kept, dialect) == value


async def test_hostile_text_survives_both_engines(db: Database) -> None:
    hostile = {"text": "nul \x00, half a pair \ud800, snow ☃"}
    row = {"agent_id": "a", "thread_id": "t", "user_id": "u", "record": hostile}
    await db.write(lambda c: c.execute(insert(sessions), row))
    assert await db.read(lambda c: c.execute(select(sessions.c.record)).scalar()) == hostile
