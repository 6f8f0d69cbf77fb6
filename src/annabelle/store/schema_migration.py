"""Migrates a database in one transaction, after a backup; on PostgreSQL a copy in a separate schema (I-19)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, Engine, MetaData, inspect, text

from annabelle.core.errors import NotFound, StorageTrouble
from annabelle.core.messages import now
from annabelle.store import backup
from annabelle.store.backup import BACKUP_TIME_FORMAT, KEEP_BACKUPS
from annabelle.store.engine import make_engine
from annabelle.store.migrations import FOLDER, NEWEST
from annabelle.store.tables import metadata

# Arbitrary number that keeps two processes from migrating one PostgreSQL database at once.
MIGRATION_LOCK = 0x616E6E6162656C6C


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """A set of tables and its revisions. Several can share a PostgreSQL database: each has its own version."""

    newest: str
    folder: Path
    tables: MetaData = metadata
    version_table: str = "alembic_version"
    create: Callable[[Connection], None] | None = None
    """Creates all tables in an empty database; without it all revisions are run."""
    extra_tables: tuple[str, ...] = ()
    """Tables that are not in `tables`, because only one engine has them."""
    snapshot_prefix: str = "backup_"
    """Prefix of the schemas that hold backups on PostgreSQL."""
    restore_command: str | None = None
    """The command that replaces a damaged file by a backup."""


HUB_PLAN = MigrationPlan(newest=NEWEST, folder=FOLDER, create=metadata.create_all)


def read_revision(connection: Connection, plan: MigrationPlan = HUB_PLAN) -> str | None:
    """Returns the revision of the tables; None if there are none yet."""
    if not inspect(connection).has_table(plan.version_table):
        return None
    return connection.execute(text(f"SELECT version_num FROM {plan.version_table}")).scalar()  # noqa: S608  ours


def migrate_database(engine: Engine, file: Path | None, backups: Path | None, plan: MigrationPlan = HUB_PLAN) -> None:
    """Backs up and migrates, if needed. A failure changes nothing."""
    with engine.connect() as connection:
        found = read_revision(connection, plan)
        connection.rollback()
        if found == plan.newest:
            return
        at = now()
        if found is not None and file is not None and backups is not None:
            backup.copy_file(file, backups, found, at)
        if file is not None:
            # Rebuilding a table drops it for a moment; foreign keys are checked at the end instead.
            _set_pragma(connection, "foreign_keys=OFF")
        try:
            with connection.begin():
                _migrate(connection, plan, at)
        finally:
            if file is not None:
                _set_pragma(connection, "foreign_keys=ON")


def _set_pragma(connection: Connection, setting: str) -> None:
    # Bypasses SQLAlchemy, which would open a transaction, where SQLite ignores such settings.
    cursor = connection.connection.cursor()
    cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _migrate(connection: Connection, plan: MigrationPlan, at: datetime) -> None:
    on_sqlite = connection.dialect.name == "sqlite"
    if not on_sqlite:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
    found = read_revision(connection, plan)  # another process may have been faster
    if found == plan.newest:
        return
    if found is None and plan.create is not None:
        create_tables(connection, plan)
        return
    if found is not None and not on_sqlite:
        take_snapshot(connection, found, at, plan)
    run_revisions(connection, plan)
    if on_sqlite and (broken := connection.exec_driver_sql("PRAGMA foreign_key_check").first()):
        raise StorageTrouble(f"The migration would leave rows of {broken[0]} without what they belong to.")


def create_tables(connection: Connection, plan: MigrationPlan = HUB_PLAN) -> None:
    """Creates all tables in an empty database: the same as running every revision, without loading Alembic."""
    if plan.create is not None:
        plan.create(connection)
    table = plan.version_table
    connection.execute(
        text(
            f"CREATE TABLE {table} (version_num VARCHAR(32) NOT NULL, CONSTRAINT {table}_pkc PRIMARY KEY (version_num))"
        )
    )
    stamp = text(f"INSERT INTO {table} (version_num) VALUES (:revision)")  # noqa: S608  a name of ours
    connection.execute(stamp, {"revision": plan.newest})


def run_revisions(connection: Connection, plan: MigrationPlan, to: str | None = None) -> None:
    """Runs missing revisions in the caller's transaction."""
    # Alembic is slow to import and rarely needed, so it is loaded only here.
    alembic_upgrade = importlib.import_module("annabelle.store.alembic_runner").run_alembic
    alembic_upgrade(connection, plan.folder, to or plan.newest, plan.version_table)


def take_snapshot(connection: Connection, revision: str, at: datetime, plan: MigrationPlan = HUB_PLAN) -> str:
    """Copies every table in the caller's transaction and drops the oldest copies; returns the new schema."""
    schema = f"{plan.snapshot_prefix}{revision}_{at.strftime(BACKUP_TIME_FORMAT).lower()}"
    connection.execute(text(f'CREATE SCHEMA "{schema}"'))
    for table in list_tables(connection, plan):
        connection.execute(text(f'CREATE TABLE "{schema}"."{table}" AS TABLE "{table}"'))
    for old in list_snapshots(connection, plan)[:-KEEP_BACKUPS]:
        connection.execute(text(f'DROP SCHEMA "{old}" CASCADE'))
    return schema


def list_snapshots(connection: Connection, plan: MigrationPlan = HUB_PLAN) -> list[str]:
    """Lists the snapshots of one set of tables, oldest first."""
    names = [name for name in inspect(connection).get_schema_names() if name.startswith(plan.snapshot_prefix)]
    return sorted(names, key=lambda name: name.rsplit("_", 1)[-1])


def restore_snapshot(url: str, schema: str, plan: MigrationPlan = HUB_PLAN) -> None:
    """Replaces the tables by a snapshot, at its revision, in one transaction."""
    engine = make_engine(url, pool_size=1)
    try:
        with engine.begin() as connection:
            if schema not in list_snapshots(connection, plan):
                raise NotFound(f"There is no backup {schema}.")
            taken_at = text(f'SELECT version_num FROM "{schema}".{plan.version_table}')  # noqa: S608  a name of ours
            revision = str(connection.execute(taken_at).scalar_one())
            for table in reversed(list_tables(connection, plan)):
                connection.execute(text(f'DROP TABLE "{table}"'))
            run_revisions(connection, plan, revision)
            _copy_rows(connection, schema, plan)
    finally:
        engine.dispose()


def _copy_rows(connection: Connection, schema: str, plan: MigrationPlan) -> None:
    for table in list_tables(connection, plan):
        if table != plan.version_table:
            insert_rows(connection, table, f'"{schema}"."{table}"')


def insert_rows(connection: Connection, table: str, source: str) -> None:
    """Fills a PostgreSQL table from a table or subquery with the same columns, and moves its counters on."""
    # Computed columns cannot be written.
    columns = [column for column in inspect(connection).get_columns(table) if "computed" not in column]
    names = ", ".join(f'"{column["name"]}"' for column in columns)
    connection.execute(text(f'INSERT INTO "{table}" ({names}) SELECT {names} FROM {source}'))  # noqa: S608  ours
    for column in columns:
        if str(column.get("default") or "").startswith("nextval"):
            counter = f"pg_get_serial_sequence('{table}', '{column['name']}')"
            highest = f'SELECT max("{column["name"]}") FROM "{table}"'  # noqa: S608
            connection.execute(text(f"SELECT setval({counter}, coalesce(({highest}), 0) + 1, false)"))


def list_tables(connection: Connection, plan: MigrationPlan) -> list[str]:
    """Lists the tables of this set, referenced ones first. Other sets in the database are left alone."""
    present = set(inspect(connection).get_table_names())
    names = (plan.version_table, *(table.name for table in plan.tables.sorted_tables), *plan.extra_tables)
    return [name for name in names if name in present]
