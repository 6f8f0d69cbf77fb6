"""Bad days: each gives one clear sentence, and nothing that was stored is lost."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, insert, select
from sqlalchemy.exc import IntegrityError

from annabelle.core.errors import StorageTrouble
from annabelle.store import backup, schema_migration
from annabelle.store.database import Database, sqlite_url
from annabelle.store.tables import sessions
from support.timing import seconds


def add(connection: Connection, size: int = 1) -> None:
    connection.execute(
        insert(sessions), {"agent_id": "a", "thread_id": "t", "user_id": "u", "record": {"text": "x" * size}}
    )


def count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(sessions)).scalar_one()


async def filled(file: Path, rows: int = 200) -> None:
    db = await Database.open(sqlite_url(file))
    await db.write(lambda c: [add(c, 500) for _ in range(rows)])
    await db.close()


@pytest.mark.incident("I-22")
async def test_a_file_that_is_no_database_is_named_with_its_newest_backup(tmp_path: Path) -> None:
    file, backups = tmp_path / "annabelle.db", tmp_path / "backups"
    await filled(file)
    backup.copy_file(file, backups, "0001", schema_migration.now())
    newest = backup.copy_file(file, backups, "0001", schema_migration.now())
    file.write_bytes(b"this was a database once" * 500)
    with pytest.raises(StorageTrouble, match=r"annabelle\.db is damaged\.$") as caught:
        await Database.open(sqlite_url(file), backups=backups)
    assert caught.value.hint == f"Restore the newest backup, {newest}."
    assert caught.value.exit_code == 3
    backup.restore_file(newest, file)
    db = await Database.open(sqlite_url(file), backups=backups)
    assert await db.read(count) == 200
    await db.close()


@pytest.mark.incident("I-22")
async def test_damage_in_the_middle_is_found_and_named(tmp_path: Path) -> None:
    file = tmp_path / "annabelle.db"
    await filled(file, 2000)
    with file.open("r+b") as raw:
        pages = raw.seek(0, 2) // 4096
        for page in range(pages // 2, pages):  # the rows; what the opening reads stands before them
            raw.seek(page * 4096)
            raw.write(b"\xff" * 4096)
    db = await Database.open(sqlite_url(file), backups=tmp_path / "none")
    problems = await db.problems()
    assert problems
    assert problems != ["ok"]
    with pytest.raises(StorageTrouble, match="is damaged") as caught:
        await db.read(lambda c: c.execute(select(sessions)).all())
    assert "no backup" in (caught.value.hint or "")
    await db.close()


async def test_a_full_disk_refuses_the_write_and_loses_nothing(tmp_path: Path) -> None:
    db = await Database.open(sqlite_url(tmp_path / "annabelle.db"))
    await db.write(add)

    def fill(connection: Connection) -> None:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
        add(connection)
        add(connection, 1_000_000)

    with pytest.raises(StorageTrouble, match="The disk is full") as caught:
        await db.write(fill)
    assert caught.value.http_status == 507
    assert await db.read(count) == 1
    await db.write(lambda c: c.exec_driver_sql("PRAGMA max_page_count=1000000"))
    await db.write(add)  # once there is space again, it goes on
    assert await db.read(count) == 2
    assert await db.problems() == []
    await db.close()


AS_NOBODY = """
import asyncio, os, sys
from annabelle.core.errors import AnnabelleError
from annabelle.store.database import Database

async def main():
    await (await Database.open(sys.argv[2])).close()  # everything is imported while it can still be read
    if os.geteuid() == 0:
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
    try:
        await Database.open(sys.argv[1])
    except AnnabelleError as error:
        print(type(error).__name__, error.message, error.hint)

asyncio.run(main())
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can walk into, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="annabelle-test-") as name:
        Path(name).chmod(0o777)
        yield Path(name)
        Path(name).chmod(0o777)


def open_as_nobody(file: Path, folder_mode: int, warm: Path) -> subprocess.CompletedProcess[str]:
    file.parent.chmod(folder_mode)
    return subprocess.run(
        [sys.executable, "-c", AS_NOBODY, sqlite_url(file), sqlite_url(warm)],
        capture_output=True,
        text=True,
        timeout=seconds(60),
    )


@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "words"),
    [(0o555, 0o644, "can not be opened: Permission denied"), (0o777, 0o444, "is read-only")],
)
async def test_a_file_that_may_not_be_written_is_named(
    open_folder: Path, tmp_path: Path, folder_mode: int, file_mode: int, words: str
) -> None:
    file, lock = open_folder / "annabelle.db", open_folder / "annabelle.db.lock"
    await filled(file, 1)
    lock.unlink()
    file.chmod(file_mode)
    done = open_as_nobody(file, folder_mode, tmp_path / "warm.db")
    assert done.stdout.startswith("StorageTrouble"), done.stderr[-2000:]
    assert words in done.stdout


@pytest.mark.req("POL-06")
async def test_what_a_statement_was_given_is_not_in_its_error(tmp_path: Path) -> None:
    db = await Database.open(sqlite_url(tmp_path / "annabelle.db"))
    record = {"agent_id": None, "thread_id": "t", "user_id": "u", "record": {"text": "my password is swordfish"}}
    with pytest.raises(IntegrityError) as caught:
        await db.write(lambda c: c.execute(insert(sessions), record))
    assert "swordfish" not in str(caught.value)
    await db.close()


@pytest.mark.incident("I-19")
async def test_a_backup_can_be_made_in_a_folder_with_any_name(tmp_path: Path) -> None:
    odd = tmp_path / "50%41 #1"
    file = odd / "annabelle.db"
    await filled(file, rows=3)
    made = backup.copy_file(file, odd / "backups", "0001", schema_migration.now())
    file.unlink()
    backup.restore_file(made, file)
    db = await Database.open(sqlite_url(file))
    assert await db.read(count) == 3
    await db.close()
