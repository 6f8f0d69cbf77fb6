"""Brings a database to the newest revision, in one transaction, after a backup (I-19)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, Engine, MetaData, inspect, text

from annabelle.core.errors import StorageTrouble
from annabelle.core.messages import now
from annabelle.store import backup
from annabelle.store.migrations import FOLDER, NEWEST
from annabelle.store.tables import metadata

# Any fixed number will do; it keeps two processes from migrating one PostgreSQL database at once.
MIGRATION_LOCK = 0x616E6E6162656C6C


@dataclass(frozen=True, slots=True)
class Plan:
    """One set of tables and its history. Several sets can share a PostgreSQL database: each has its own version."""

    newest: str
    folder: Path
    tables: MetaData = metadata
    version_table: str = "alembic_version"
    create: Callable[[Connection], None] | None = None
    """Makes all tables at once in an empty database; without it the revisions are run in turn."""
    beside: tuple[str, ...] = ()
    """Tables of this set that are not in `tables`, because only one engine has them."""
    snapshots: str = "backup_"
    """What the names of this set's copies on PostgreSQL begin with."""
    way_back: str | None = None
    """The command that puts a backup in the place of a damaged file."""


HUB = Plan(newest=NEWEST, folder=FOLDER, create=metadata.create_all)


def revision(connection: Connection, plan: Plan = HUB) -> str | None:
    """The revision the tables are at; None for a database that has none of them yet."""
    if not inspect(connection).has_table(plan.version_table):
        return None
    return connection.execute(text(f"SELECT version_num FROM {plan.version_table}")).scalar()  # noqa: S608  ours


def bring_up_to_date(engine: Engine, file: Path | None, backups: Path | None, plan: Plan = HUB) -> None:
    """Do nothing when there is nothing to do; else back up and migrate. A failure leaves everything as it was."""
    with engine.connect() as connection:
        found = revision(connection, plan)
        connection.rollback()
        if found == plan.newest:
            return
        at = now()
        if found is not None and file is not None and backups is not None:
            backup.copy_file(file, backups, found, at)
        if file is not None:
            # Rebuilding a table drops it for a moment; what it must hold is checked at the end instead.
            _pragma(connection, "foreign_keys=OFF")
        try:
            with connection.begin():
                _migrate(connection, plan, at)
        finally:
            if file is not None:
                _pragma(connection, "foreign_keys=ON")


def _pragma(connection: Connection, setting: str) -> None:
    # Past SQLAlchemy, which would open a transaction, in which SQLite passes such settings over.
    cursor = connection.connection.cursor()
    cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _migrate(connection: Connection, plan: Plan, at: datetime) -> None:
    on_sqlite = connection.dialect.name == "sqlite"
    if not on_sqlite:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
    found = revision(connection, plan)  # another process may have been faster
    if found == plan.newest:
        return
    if found is None and plan.create is not None:
        create(connection, plan)
        return
    if found is not None and not on_sqlite:
        importlib.import_module("annabelle.store.snapshots").take(connection, found, at, plan)
    upgrade(connection, plan)
    if on_sqlite and (broken := connection.exec_driver_sql("PRAGMA foreign_key_check").first()):
        raise StorageTrouble(f"The migration would leave rows of {broken[0]} without what they belong to.")


def create(connection: Connection, plan: Plan = HUB) -> None:
    """All tables at once in an empty database: the same result as every revision in turn, without loading Alembic."""
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


def upgrade(connection: Connection, plan: Plan, to: str | None = None) -> None:
    """Run the revisions that are missing, within the caller's transaction."""
    # Alembic costs more to import than most starts need, so it is loaded when a migration is really due.
    alembic_upgrade = importlib.import_module("annabelle.store.revisions").run
    alembic_upgrade(connection, plan.folder, to or plan.newest, plan.version_table)
