"""Work that every process of the suite would do again: done once, by the template and by each worker."""

from __future__ import annotations

import functools
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import cast

from dbos._sys_db_sqlite import SQLiteSystemDatabase
from sqlalchemy import Engine

from annabelle.embeddings import EmbeddingConfig, embedded_model
from annabelle.store import database
from annabelle.store.engine import make_engine, sqlite_url
from annabelle.store.memory.tables import MEMORY_PLAN
from annabelle.store.schema_migration import HUB_PLAN, MigrationPlan, migrate_database

_folder = tempfile.TemporaryDirectory(prefix="annabelle-tests-")
_prepared: dict[str, Path] = {}
"""Databases with all tables and no row, by what makes them."""


def do_once() -> None:
    """Read the packaged weights once, and copy new SQLite databases instead of making their tables."""
    embedded_model.load_weights = functools.cache(embedded_model.load_weights)
    database.migrate_database = _migrate_database
    SQLiteSystemDatabase.run_migrations = _run_migrations


def do_now() -> None:
    """Do it ahead, for all that will be forked."""
    embedded_model.load_weights(EmbeddingConfig().model)
    with tempfile.TemporaryDirectory() as folder:
        for name, plan in (("hub", HUB_PLAN), ("memory", MEMORY_PLAN)):
            engine = make_engine(sqlite_url(Path(folder, f"{name}.db")), "NORMAL", pool_size=1)
            _migrate_database(engine, Path(folder, f"{name}.db"), None, plan)
            engine.dispose()


def _migrate_database(engine: Engine, file: Path | None, backups: Path | None, plan: MigrationPlan = HUB_PLAN) -> None:
    if plan in (HUB_PLAN, MEMORY_PLAN) and file is not None:
        _fill(engine, plan.version_table, lambda other: migrate_database(other, file, None, plan))
    migrate_database(engine, file, backups, plan)


_make_workflow_tables = SQLiteSystemDatabase.run_migrations


def _run_migrations(self: SQLiteSystemDatabase) -> None:
    def make(other: Engine) -> None:
        own, self.engine = self.engine, other
        try:
            _make_workflow_tables(self)
        finally:
            self.engine = own

    _fill(self.engine, "dbos", make)
    _make_workflow_tables(self)


def _fill(engine: Engine, kind: str, make: Callable[[Engine], None]) -> None:
    """Copy the tables into a new database."""
    file = Path(str(engine.url.database))
    if file.exists() and file.stat().st_size:
        return
    if kind not in _prepared:
        empty = Path(_folder.name, f"{kind}-{os.getpid()}.db")
        made = make_engine(sqlite_url(empty), "NORMAL", pool_size=1)
        make(made)
        made.dispose()
        _prepared[kind] = empty
    with closing(engine.raw_connection()) as raw:
        target = cast("sqlite3.Connection", raw.driver_connection)
        driver = sys.modules[type(target).__module__]
        with closing(driver.connect(str(_prepared[kind]))) as source:
            source.backup(target)
