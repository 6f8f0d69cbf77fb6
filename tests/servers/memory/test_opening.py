"""The memory opens at the first call, once, and says what is wrong when it can not."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from annabelle.core.errors import AlreadyRunning, StorageTrouble, Unavailable
from annabelle.core.home import Home
from annabelle.embeddings import EmbeddingConfig
from annabelle.servers.memory import open_memory as library_module
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.open_memory import OpenMemory
from annabelle.store.database import Database
from servers.memory.memories import MakeMemory, Memory
from support.timing import seconds

HEAVY = ("sqlalchemy", "numpy", "tokenizers", "alembic", "httpx2", "annabelle.servers.memory.open_memory")


def test_the_server_is_ready_without_loading_anything_heavy(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from annabelle.servers.memory.server import build\n"
        "server = build()\n"
        "asyncio.run(server._list(None, None))\n"
        f"print(len(server.tools) > 5, [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=seconds(60),
        env={**os.environ, "ANNABELLE_HOME": str(tmp_path / "home")},
    )
    assert done.stdout == "True []\n", done.stderr
    assert not (tmp_path / "home").exists(), "nothing is made on disk before somebody asks"


@pytest.mark.req("MEM-01")
async def test_calls_that_come_at_once_share_one_opening(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[MemoryConfig] = []
    really = OpenMemory.open

    async def counted(config: MemoryConfig) -> OpenMemory:
        opened.append(config)
        return await really(config)

    monkeypatch.setattr(library_module.OpenMemory, "open", counted)
    found = await asyncio.gather(*(memory.library() for _ in range(10)))
    assert len({id(library) for library in found}) == len(opened) == 1


async def test_a_caller_that_gives_up_does_not_stop_the_opening(memory: Memory) -> None:
    first = asyncio.create_task(memory.library())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert (await memory.library()).database.dialect in ("sqlite", "postgresql")


async def test_an_opening_that_failed_is_tried_again_at_the_next_call(
    open_memory: MakeMemory, sqlite_config: MemoryConfig
) -> None:
    sqlite_config.file.parent.mkdir(parents=True, exist_ok=True)
    sqlite_config.file.mkdir()  # not a file, so it can not be a database
    memory = open_memory(sqlite_config)
    call = memory.as_()
    for _ in range(2):
        with pytest.raises(StorageTrouble, match="can not be opened"):
            await call("backfill_embeddings")
    sqlite_config.file.rmdir()
    assert (await call("backfill_embeddings")).total == 0


@pytest.mark.req("MEM-01")
async def test_closing_folds_everything_into_the_file_and_the_next_opening_finds_it(
    open_memory: MakeMemory, sqlite_config: MemoryConfig
) -> None:
    memory = open_memory(sqlite_config)
    await memory.as_person()("create_contact", name="Grace", email="grace@example.org")
    log = sqlite_config.file.with_name(f"{sqlite_config.file.name}-wal")
    assert log.stat().st_size > 0
    await memory.close()
    await memory.close()
    assert not log.exists() or log.stat().st_size == 0
    with pytest.raises(Unavailable, match="stopping"):
        await memory.library()
    again = open_memory(sqlite_config)
    assert [contact.name for contact in (await again.as_person()("list_contacts")).contacts] == ["Grace"]


@pytest.mark.incident("I-22")
async def test_a_second_memory_on_the_same_file_is_turned_away(
    open_memory: MakeMemory, sqlite_config: MemoryConfig
) -> None:
    first, second = open_memory(sqlite_config), open_memory(sqlite_config)
    await first.library()
    with pytest.raises(AlreadyRunning, match=f"in use by process {os.getpid()}"):
        await second.as_()("backfill_embeddings")
    await first.close()
    assert (await second.as_()("backfill_embeddings")).total == 0, "once the first is gone the second works"


async def test_a_full_disk_is_one_sentence_and_costs_nothing_that_was_stored(
    open_memory: MakeMemory, sqlite_config: MemoryConfig
) -> None:
    memory = open_memory(sqlite_config)
    call = memory.as_person()
    await call("create_contact", name="Grace", email="grace@example.org")
    database: Database = (await memory.library()).database

    def limit(connection: object, pages: int) -> int:
        return int(connection.exec_driver_sql(f"PRAGMA max_page_count={pages}").scalar())  # type: ignore[attr-defined]

    used = await database.write(lambda c: limit(c, 1))  # no less than there are

    async def fill() -> None:
        for number in range(10_000):
            await call("create_contact", name="x", email=f"{number}@example.org", notes="x" * 1000)

    with pytest.raises(StorageTrouble, match="disk is full"):
        await fill()
    await database.write(lambda c: limit(c, used + 1000))
    await call("create_contact", name="Edsger", email="edsger@example.org")
    names = {contact.name for contact in (await call("list_contacts", name="e")).contacts}
    assert {"Grace", "Edsger"} <= names


async def test_without_embeddings_everything_else_works(open_memory: MakeMemory, sqlite_config: MemoryConfig) -> None:
    memory = open_memory(sqlite_config, embedding=EmbeddingConfig(provider="none", model=""))
    assert await (await memory.library()).embed_or_none(["tea"]) is None
    assert (await memory.as_()("backfill_embeddings")).remaining == 0


def test_the_environment_decides_where_the_memory_is(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("DATABASE_URL", "MEMORY_DB_PATH", "MEMORY_BACKUP_HOURS", "EMBEDDING_PROVIDER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANNABELLE_HOME", str(home.root))
    found = MemoryConfig.from_environment()
    assert (found.file, found.backups, found.database_url) == (home.memory_file, home.backups, None)
    monkeypatch.setenv("MEMORY_DB_PATH", str(tmp_path / "other.db"))
    monkeypatch.setenv("MEMORY_BACKUP_HOURS", "1.5")
    monkeypatch.setenv("DATABASE_URL", "postgresql://ada:secret@host/annabelle")
    other = MemoryConfig.from_environment()
    assert (other.file, other.backup_hours) == (tmp_path / "other.db", 1.5)
    assert other == replace(found, file=other.file, backup_hours=1.5, database_url=other.database_url)
    assert "secret" not in repr(other)
