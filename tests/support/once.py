"""Work that every process of the suite would do again: done once, by the template and by each worker."""

from __future__ import annotations

import functools
import inspect
import os
import sqlite3
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import certifi
from dbos._sys_db_sqlite import SQLiteSystemDatabase
from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.engine import Compiled
from sqlalchemy.util import LRUCache

from annabelle.embeddings import EmbeddingConfig, embedded_model
from annabelle.policy.intent.orders import orders_in
from annabelle.servers.kit import tools
from annabelle.store import database, engine as engines
from annabelle.store.engine import make_engine, sqlite_url
from annabelle.store.memory.tables import MEMORY_PLAN
from annabelle.store.schema_migration import HUB_PLAN, MigrationPlan, migrate_database

_PLANS = (HUB_PLAN, MEMORY_PLAN)
_WORKFLOWS = "dbos"
_PAGE_BYTES = 4096
_folder = tempfile.TemporaryDirectory(prefix="annabelle-tests-")
_prepared: dict[str, Path] = {}
"""Databases with all tables and no row, by what makes them."""


class _CompiledStatements(LRUCache[tuple[object, ...], Compiled]):
    """Statements in SQL, whichever engine first executed them: every test has engines of its own."""

    def get(self, key: tuple[object, ...], default: Compiled | None = None) -> Compiled | None:
        return super().get(key[1:], default)

    def __setitem__(self, key: tuple[object, ...], value: Compiled) -> None:
        super().__setitem__(key[1:], value)


_compiled = defaultdict[str, _CompiledStatements](partial(_CompiledStatements, 2_000))


def do_once() -> None:
    """Read weights and compile statements once, read one authority instead of all, and copy new databases."""
    embedded_model.load_weights = functools.cache(embedded_model.load_weights)
    engines.create_engine = _create_engine
    database.migrate_database = _migrate_database
    SQLiteSystemDatabase.run_migrations = _run_migrations
    # No test reaches a server that the system's 140 authorities know, and reading them takes a tenth of a second.
    first = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----")
    file = Path(_folder.name, "authority.pem")
    file.write_text("".join(first[:2]) + "\n")
    os.environ["SSL_CERT_FILE"] = str(file)


def do_now() -> None:
    """Do it ahead, for all that will be forked: also what a process does once, when it first needs it."""
    embedded_model.load_weights(EmbeddingConfig().model, None)
    orders_in("hello")
    for name, module in [*sys.modules.items()]:
        if name.startswith("annabelle."):
            for value in [*vars(module).values()]:
                _make_ahead(value)
    for plan in _PLANS:
        _prepare(plan.version_table, partial(_make_tables, plan))
    _prepare(_WORKFLOWS, _make_workflow_tables)


def _make_ahead(value: object) -> None:
    """What a function of no parameters keeps, and the declarations of a class's tools."""
    if isinstance(value, functools._lru_cache_wrapper) and not inspect.signature(value).parameters:
        value()
    elif inspect.isclass(value):
        for method in vars(value).values():
            if inspect.isfunction(method) and hasattr(method, tools.MARK):
                tools.declare_function(method, is_method=True)


def _migrate_database(engine: Engine, file: Path | None, backups: Path | None, plan: MigrationPlan = HUB_PLAN) -> None:
    if plan in _PLANS and file is not None:
        _fill(engine, plan.version_table, partial(_make_tables, plan))
    migrate_database(engine, file, backups, plan)


def _create_engine(url: URL, **options: Any) -> Engine:
    engine = create_engine(url, **options)
    engine._compiled_cache = _compiled[engine.dialect.name]
    return engine


def _make_tables(plan: MigrationPlan, engine: Engine) -> None:
    migrate_database(engine, Path(str(engine.url.database)), None, plan)


_run_own_migrations = SQLiteSystemDatabase.run_migrations


def _run_migrations(self: SQLiteSystemDatabase) -> None:
    self.engine._compiled_cache = _compiled[_WORKFLOWS]
    _fill(self.engine, _WORKFLOWS, _make_workflow_tables)
    _run_own_migrations(self)


def _make_workflow_tables(engine: Engine) -> None:
    _run_own_migrations(cast("SQLiteSystemDatabase", SimpleNamespace(engine=engine)))


def _fill(engine: Engine, kind: str, make: Callable[[Engine], None]) -> None:
    """Copy the tables into a new database. It may have been opened before; an empty one is one page long."""
    file = Path(str(engine.url.database))
    if file.exists() and not (file.is_file() and file.stat().st_size in (0, _PAGE_BYTES)):
        return
    prepared = _prepare(kind, make)
    with closing(engine.raw_connection()) as raw:
        target = cast("sqlite3.Connection", raw.driver_connection)
        driver = sys.modules[type(target).__module__]
        if target.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
            with closing(driver.connect(str(prepared))) as source:
                source.backup(target)


def _prepare(kind: str, make: Callable[[Engine], None]) -> Path:
    if kind not in _prepared:
        empty = Path(_folder.name, f"{kind}-{os.getpid()}.db")
        engine = make_engine(sqlite_url(empty), "NORMAL", pool_size=1)
        make(engine)
        engine.dispose()
        _prepared[kind] = empty
    return _prepared[kind]
