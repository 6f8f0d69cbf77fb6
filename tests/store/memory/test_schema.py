"""The memory's tables have a history of their own, beside the hub's where they share a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from annabelle.core.errors import StorageTrouble
from annabelle.core.messages import now
from annabelle.store import schema_migration
from annabelle.store.alembic_runner import list_heads, run_alembic
from annabelle.store.database import Database, sqlite_url
from annabelle.store.engine import make_engine
from annabelle.store.memory import text_index
from annabelle.store.memory.migrations import FOLDER, NEWEST
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import MEMORY_PLAN, metadata
from annabelle.store.schema_migration import HUB_PLAN

VERSION = MEMORY_PLAN.version_table
ADD_CONTACT = text(
    "INSERT INTO contacts (user_id, agent_id, name, email, type, trust, origin, created_at, updated_at)"
    " VALUES ('ada', 'a', :name, :name, 'work', 'trusted', '{}', :at, :at)"
)


def by_revisions(connection: Connection) -> None:
    run_alembic(connection, FOLDER, NEWEST, VERSION)


@pytest.fixture
def empty(database_url: str) -> Iterator[Connection]:
    engine = make_engine(database_url, pool_size=1)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


@pytest.mark.req("MEM-01")
def test_there_is_one_newest_revision_and_the_program_names_it() -> None:
    assert list_heads(FOLDER) == [NEWEST]


@pytest.mark.req("MEM-01")
def test_the_revisions_and_the_tables_in_the_code_agree(empty: Connection) -> None:
    by_revisions(empty)
    known = set(metadata.tables)

    def ours(name: str | None, kind: str, parents: object) -> bool:
        return kind != "table" or name in known  # what full text needs is compared below

    opts = {"compare_type": True, "compare_server_default": True, "include_name": ours, "version_table": VERSION}
    assert compare_metadata(MigrationContext.configure(empty, opts=opts), metadata) == []


@pytest.mark.req("MEM-01")
def test_a_new_file_is_the_same_as_one_brought_up_by_revisions(tmp_path: Path) -> None:
    def schema(name: str, make: Callable[[Connection], None]) -> set[tuple[str, ...]]:
        engine = make_engine(sqlite_url(tmp_path / name), pool_size=1)
        with engine.begin() as connection:
            make(connection)
            rows = connection.execute(
                text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name != :version"),
                {"version": VERSION},
            ).all()
            settings = [
                (table, *map(str, row))
                for table in ("fact_text_config", "conversation_text_config")
                for row in connection.exec_driver_sql(f"SELECT k, v FROM {table}")
            ]
        engine.dispose()
        return {*settings} | {(row[0], *sorted(part.strip(" ()\n\t") for part in row[1].split(", \n"))) for row in rows}

    assert schema("new.db", lambda c: schema_migration.create_tables(c, MEMORY_PLAN)) == schema("old.db", by_revisions)


@pytest.mark.req("MEM-01")
def test_a_new_postgresql_set_is_the_same_as_one_brought_up_by_revisions(postgres_url: str) -> None:
    def schema(make: Callable[[Connection], None]) -> list[object]:
        engine = make_engine(postgres_url, pool_size=1)
        with engine.connect() as connection:
            make(connection)
            columns = connection.execute(
                text(
                    "SELECT table_name, column_name, data_type, is_nullable, generation_expression"
                    " FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"
                )
            ).all()
            indexes = connection.execute(
                text("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1")
            ).all()
            connection.rollback()
        engine.dispose()
        return [*columns, *indexes]

    made = schema(lambda c: schema_migration.create_tables(c, MEMORY_PLAN))
    assert made == schema(by_revisions)
    assert any("text_index" in str(row) for row in made)


@pytest.mark.req("MEM-01", "MEM-11")
async def test_hub_and_memory_share_a_postgresql_database_without_disturbing_each_other(postgres_url: str) -> None:
    hub = await Database.open(postgres_url)
    memory = await Database.open(postgres_url, plan=MEMORY_PLAN)
    assert await hub.read(schema_migration.read_revision) == HUB_PLAN.newest
    assert await memory.read(lambda c: schema_migration.read_revision(c, MEMORY_PLAN)) == NEWEST
    session = text("INSERT INTO sessions (agent_id, thread_id, user_id, record) VALUES ('a', 't', 'u', '{}')")
    await hub.write(lambda c: c.execute(session))
    await memory.write(lambda c: c.execute(ADD_CONTACT, {"name": "Grace", "at": now()}))
    await memory.write(lambda c: text_index.index_row(c, "fact", Owner("ada", "a"), 1, "Ada likes tea"))
    of_hub = await hub.write(lambda c: schema_migration.take_snapshot(c, HUB_PLAN.newest, now()))
    of_memory = await memory.write(lambda c: schema_migration.take_snapshot(c, NEWEST, now(), MEMORY_PLAN))
    assert await memory.read(schema_migration.list_snapshots) == [of_hub]
    assert await memory.read(lambda c: schema_migration.list_snapshots(c, MEMORY_PLAN)) == [of_memory]
    copied = await memory.read(lambda c: set(inspect(c).get_table_names(schema=of_memory)))
    assert copied == {*metadata.tables, VERSION, "text_index"}
    assert not copied & set(await memory.read(lambda c: inspect(c).get_table_names(schema=of_hub)))

    await memory.write(lambda c: c.execute(text("DELETE FROM contacts")))
    await memory.write(lambda c: text_index.remove_rows(c, "fact", [1]))
    await hub.write(lambda c: c.execute(session))
    await memory.close()
    schema_migration.restore_snapshot(postgres_url, of_memory, MEMORY_PLAN)
    memory = await Database.open(postgres_url, plan=MEMORY_PLAN)
    await memory.write(lambda c: c.execute(ADD_CONTACT, {"name": "Edsger", "at": now()}))
    rows = await memory.read(lambda c: c.execute(text("SELECT id, name FROM contacts ORDER BY id")).all())
    assert [row[1] for row in rows] == ["Grace", "Edsger"], "what was there is back, and the counter goes on behind it"
    found = await memory.read(
        lambda c: text_index.find_rows(c, "fact", Owner("ada", "a"), text_index.count_terms(c, "fact", "tea"), 5)
    )
    assert [row_id for row_id, _ in found] == [1]
    assert await hub.read(lambda c: c.execute(text("SELECT count(*) FROM sessions")).scalar()) == 2, "not the hub's"
    await memory.close()
    await hub.close()


@pytest.mark.incident("I-19")
async def test_a_damaged_file_names_its_backup_and_the_command(tmp_path: Path) -> None:
    file, backups = tmp_path / "memory.db", tmp_path / "backups"
    await (await Database.open(sqlite_url(file), plan=MEMORY_PLAN)).close()
    backups.mkdir()
    kept = backups / "memory-0001-20250101T000000000000.db"
    kept.write_bytes(file.read_bytes())
    file.write_bytes(b"not a database at all" * 500)
    with pytest.raises(StorageTrouble) as caught:
        await Database.open(sqlite_url(file), backups=backups, plan=MEMORY_PLAN)
    assert caught.value.hint == f"Restore the newest backup, {kept}, with `annabelle memory restore`."
