"""An upgrade either happens whole, or leaves everything as it was, with a backup and a way back."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from annabelle.core.errors import AlreadyRunning, NotFound, StorageTrouble
from annabelle.store import backup, cost_control, schema_migration
from annabelle.store.alembic_runner import list_heads, run_alembic
from annabelle.store.database import Database, sqlite_url
from annabelle.store.engine import make_engine
from annabelle.store.migrations import FOLDER, NEWEST
from annabelle.store.schema_migration import MigrationPlan
from annabelle.store.tables import metadata
from support.timing import seconds

HEAD = 'revision = "{revision}"\ndown_revision = {parent}\nimport sqlalchemy as sa\nfrom alembic import op\n\n'
OLD = HEAD + "def upgrade():\n    op.create_table('threads', sa.Column('id', sa.Text, primary_key=True))\n"
NEW = HEAD + (
    "def upgrade():\n    op.add_column('threads', sa.Column('title', sa.Text))\n"
    "    op.execute(\"UPDATE threads SET title = 'about ' || id\")\n"
)
BROKEN = NEW + "    op.create_table('half', sa.Column('id', sa.Text))\n    op.execute('SELECT * FROM nowhere')\n"


def revisions(folder: Path, *sources: str) -> MigrationPlan:
    """A history of its own, one revision per source, as an older or newer version of Annabelle would bring."""
    versions = folder / "versions"
    versions.mkdir(parents=True, exist_ok=True)
    for number, source in enumerate(sources, 1):
        parent = f'"r{number - 1}"' if number > 1 else "None"
        (versions / f"r{number}.py").write_text(source.format(revision=f"r{number}", parent=parent))
    return MigrationPlan(newest=f"r{len(sources)}", folder=folder)


def columns(connection: Connection) -> set[str]:
    return {column["name"] for column in inspect(connection).get_columns("threads")}


@pytest.fixture
def old_plan(tmp_path: Path) -> MigrationPlan:
    return revisions(tmp_path / "old", OLD)


@pytest.fixture
async def old_database(empty_database_url: str, old_plan: MigrationPlan) -> str:
    """A database as an older version left it, with something in it."""
    db = await Database.open(empty_database_url, plan=old_plan)
    await db.write(lambda c: c.execute(text("INSERT INTO threads (id) VALUES ('ada')")))
    await db.close()
    return empty_database_url


@pytest.mark.req("MEM-01")
async def test_an_older_database_is_brought_up_to_date_with_its_data(old_database: str, tmp_path: Path) -> None:
    db = await Database.open(old_database, backups=tmp_path / "backups", plan=revisions(tmp_path / "new", OLD, NEW))
    assert await db.read(lambda c: c.execute(text("SELECT id, title FROM threads")).all()) == [("ada", "about ada")]
    assert await db.read(schema_migration.read_revision) == "r2"
    await db.close()


@pytest.mark.incident("I-19")
async def test_a_backup_is_made_before_and_holds_the_old_state(old_database: str, tmp_path: Path) -> None:
    db = await Database.open(old_database, backups=tmp_path / "backups", plan=revisions(tmp_path / "new", OLD, NEW))
    if db.dialect == "sqlite":
        (kept,) = (tmp_path / "backups").iterdir()
        assert kept.name.startswith("annabelle-r1-")
        engine = make_engine(sqlite_url(kept))
        with engine.connect() as connection:
            assert columns(connection) == {"id"}
            assert connection.execute(text("SELECT id FROM threads")).scalar() == "ada"
        engine.dispose()
    else:
        (schema,) = await db.read(schema_migration.list_snapshots)
        assert schema.startswith("backup_r1_")
        assert await db.read(lambda c: c.execute(text(f'SELECT id FROM "{schema}".threads')).scalar()) == "ada"
    await db.close()


@pytest.mark.incident("I-19")
async def test_a_migration_that_fails_changes_nothing(
    old_database: str, old_plan: MigrationPlan, tmp_path: Path
) -> None:
    broken = revisions(tmp_path / "new", OLD, BROKEN)
    for _ in range(2):
        with pytest.raises(Exception, match="nowhere"):
            await Database.open(old_database, backups=tmp_path / "backups", plan=broken)
    db = await Database.open(old_database, backups=tmp_path / "backups", plan=old_plan)  # the older version still runs
    assert await db.read(columns) == {"id"}
    assert await db.read(lambda c: inspect(c).get_table_names()) == ["alembic_version", "threads"]
    assert await db.read(lambda c: c.execute(text("SELECT id FROM threads")).scalar()) == "ada"
    if db.dialect == "sqlite":
        assert len(list((tmp_path / "backups").iterdir())) == 2
    await db.close()


@pytest.mark.incident("I-19")
async def test_a_backup_file_can_be_put_back(tmp_path: Path, old_plan: MigrationPlan) -> None:
    file, backups = tmp_path / "annabelle.db", tmp_path / "backups"
    await (await Database.open(sqlite_url(file), plan=old_plan)).close()
    db = await Database.open(sqlite_url(file), backups=backups, plan=revisions(tmp_path / "new", OLD, NEW))
    (kept,) = backups.iterdir()
    with pytest.raises(AlreadyRunning):
        backup.restore_file(kept, file)
    await db.close()
    backup.restore_file(kept, file)
    db = await Database.open(sqlite_url(file), plan=old_plan)
    assert await db.read(columns) == {"id"}
    await db.close()
    engine = make_engine(sqlite_url(tmp_path / "annabelle.db.replaced"))
    with engine.connect() as connection:
        assert columns(connection) == {"id", "title"}  # what was there is not lost
    engine.dispose()
    assert [backup.restore_file(kept, file).name for _ in range(2)] == [
        "annabelle.db.replaced-2",
        "annabelle.db.replaced-3",
    ]


@pytest.mark.incident("I-19")
async def test_a_snapshot_on_postgresql_can_be_put_back(postgres_url: str) -> None:
    db = await Database.open(postgres_url)
    row = {"a": "agent", "t": "thread", "u": "owner", "r": '{"n":1}'}
    add = text("INSERT INTO sessions (agent_id, thread_id, user_id, record) VALUES (:a, :t, :u, :r)")
    await db.write(lambda c: c.execute(add, row))
    schema = await db.write(lambda c: schema_migration.take_snapshot(c, NEWEST, schema_migration.now()))
    await db.write(lambda c: c.execute(text("DELETE FROM sessions")))
    await db.close()
    schema_migration.restore_snapshot(postgres_url, schema)
    db = await Database.open(postgres_url)
    await db.write(lambda c: c.execute(add, row))  # the counter goes on behind what came back
    assert await db.read(lambda c: c.execute(text("SELECT position FROM sessions ORDER BY 1")).scalars().all()) == [
        1,
        2,
    ]
    assert await db.read(schema_migration.read_revision) == NEWEST
    await db.close()
    with pytest.raises(NotFound):
        schema_migration.restore_snapshot(postgres_url, "backup_of_nothing")


async def test_only_the_last_backups_are_kept(tmp_path: Path, old_plan: MigrationPlan) -> None:
    file, backups = tmp_path / "annabelle.db", tmp_path / "backups"
    await (await Database.open(sqlite_url(file), plan=old_plan)).close()
    made = [backup.copy_file(file, backups, "r1", schema_migration.now()) for _ in range(backup.KEEP_BACKUPS + 2)]
    assert sorted(backups.iterdir()) == sorted(made[2:])


async def test_only_the_last_snapshots_are_kept(postgres_url: str) -> None:
    db = await Database.open(postgres_url)
    made = [
        await db.write(lambda c: schema_migration.take_snapshot(c, "r1", schema_migration.now()))
        for _ in range(backup.KEEP_BACKUPS + 1)
    ]
    assert await db.read(schema_migration.list_snapshots) == made[1:]
    await db.close()


async def test_a_backup_that_can_not_be_written_stops_the_upgrade(tmp_path: Path, old_plan: MigrationPlan) -> None:
    file = tmp_path / "annabelle.db"
    await (await Database.open(sqlite_url(file), plan=old_plan)).close()
    (tmp_path / "backups").write_text("not a folder")
    with pytest.raises(StorageTrouble, match=r"backup of annabelle\.db could not be written"):
        await Database.open(sqlite_url(file), backups=tmp_path / "backups", plan=revisions(tmp_path / "n", OLD, NEW))
    db = await Database.open(sqlite_url(file), plan=old_plan)
    assert await db.read(columns) == {"id"}
    await db.close()


async def test_a_database_of_a_newer_version_is_left_alone(old_database: str, tmp_path: Path) -> None:
    newer = revisions(tmp_path / "new", OLD, NEW)
    await (await Database.open(old_database, plan=newer)).close()
    with pytest.raises(StorageTrouble, match="another version of Annabelle") as caught:
        await Database.open(old_database, plan=revisions(tmp_path / "older", OLD))
    assert "newer version" in (caught.value.hint or "")


@pytest.mark.req("MEM-01")
async def test_a_new_database_knows_its_revision_and_is_opened_again(empty_database_url: str) -> None:
    for _ in range(2):
        db = await Database.open(empty_database_url)
        assert await db.read(schema_migration.read_revision) == NEWEST
        await db.close()


@pytest.mark.req("MEM-01")
def test_there_is_one_newest_revision_and_the_program_names_it() -> None:
    assert list_heads(FOLDER) == [NEWEST]


@pytest.fixture
def empty(empty_database_url: str) -> Iterator[Connection]:
    engine = make_engine(empty_database_url, pool_size=1)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


@pytest.mark.req("MEM-01")
def test_the_revisions_and_the_tables_in_the_code_agree(empty: Connection) -> None:
    run_alembic(empty, FOLDER, NEWEST)
    context = MigrationContext.configure(empty, opts={"compare_type": True, "compare_server_default": True})
    assert compare_metadata(context, metadata) == []


@pytest.mark.req("TRU-01")
def test_what_was_spent_before_budgets_came_counts_for_them(empty: Connection) -> None:
    run_alembic(empty, FOLDER, "0002")
    add = text(
        "INSERT INTO model_calls (call_id, state, agent_id, user_id, purpose, provider, model, estimated_input_tokens,"
        " input_tokens, output_tokens, cached_tokens, cost_usd, reserved_at)"
        " VALUES (:id, 'settled', 'a', 'owner', 'chat', 'groq', 'm', 1, 1, 1, 0, :usd, :at)"
    )
    for call_id, usd, day in (("a", 0.25, "02"), ("b", 0.5, "03"), ("c", 0.125, "03"), ("d", None, "03")):
        at = f"2026-07-{day}T12:00:00.000000+00:00"
        empty.execute(add, {"id": call_id, "usd": usd, "at": at})
    run_alembic(empty, FOLDER, NEWEST)
    day, month = cost_control.read_spending(empty, datetime(2026, 7, 3, 12, tzinfo=UTC))
    assert (day.settled, month.settled) == (cost_control.to_nano_usd(0.625), cost_control.to_nano_usd(0.875))
    assert (day.reserved, day.warned_at) == (0, None)


def test_a_new_database_is_the_same_as_one_brought_up_by_revisions(tmp_path: Path) -> None:
    def schema(name: str, make: object) -> set[tuple[str, ...]]:
        engine = make_engine(sqlite_url(tmp_path / name), pool_size=1)
        with engine.begin() as connection:
            make(connection)  # type: ignore[operator]
            rows = connection.execute(
                text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name != 'alembic_version'")
            ).all()
        engine.dispose()
        # A column that was added later stands behind the last one, without a line of its own. A table that was made
        # again to lose a constraint has its name in quotes.
        return {
            (row[0], *sorted(part.strip(" ()\n\t") for part in re.split(r",\s+", row[1].replace('"', ""))))
            for row in rows
        }

    assert schema("new.db", schema_migration.create_tables) == schema(
        "old.db", lambda c: run_alembic(c, FOLDER, NEWEST)
    )


def test_a_start_with_nothing_to_do_does_not_load_alembic(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from annabelle.store.database import Database\n"
        "async def main():\n"
        "    for _ in range(2):\n"
        "        await (await Database.open(sys.argv[1])).close()\n"
        "asyncio.run(main())\n"
        "print('alembic' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, sqlite_url(tmp_path / "a.db")], capture_output=True, text=True, timeout=seconds(60)
    )
    assert done.stdout == "False\n", done.stderr
