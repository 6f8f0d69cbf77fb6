"""Engines for both databases, set up the one way that is fast and survives a kill at any moment."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Literal

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from annabelle.core.errors import ConfigMistake
from annabelle.store.driver import driver

DialectName = Literal["sqlite", "postgresql"]

_log = logging.getLogger(__name__)

BUSY_TIMEOUT_MS = 10_000
CONNECT_TIMEOUT_SECONDS = 10
POSTGRES_BOUNDS = "-c lock_timeout=15s -c statement_timeout=60s -c idle_in_transaction_session_timeout=60s"


def sqlite_url(path: Path) -> str:
    """The address of a SQLite file."""
    return URL.create("sqlite", database=str(path)).render_as_string()


def parse_url(url: str) -> URL:
    """The address of a database as SQLAlchemy wants it; a plain postgresql:// gets the driver we ship."""
    try:
        parsed = make_url(url)
    except Exception as error:
        raise ConfigMistake("DATABASE_URL is not a database address.", field="DATABASE_URL") from error
    if parsed.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername == "sqlite" and parsed.database not in (None, "", ":memory:"):
        return parsed
    raise ConfigMistake(
        f"DATABASE_URL starts with {parsed.drivername}://, which is not supported.",
        hint="Use postgresql://user:password@host/database, or leave it out for SQLite in the home.",
        field="DATABASE_URL",
    )


def make_engine(
    url: str, synchronous: str = "NORMAL", *, pool_size: int = 5, pool_timeout: float = 30, read_only: bool = False
) -> Engine:
    """An engine set up our way. On SQLite a transaction takes the write lock at its start, so none fails half-way.

    What a statement was given is not part of its error: that is what people said, and errors are logged and shown.
    """
    parsed = parse_url(url)
    if parsed.drivername != "sqlite":
        return create_engine(
            parsed,
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_timeout=pool_timeout,
            pool_pre_ping=True,
            hide_parameters=True,
            execution_options={"postgresql_readonly": True} if read_only else {},
            connect_args={
                "connect_timeout": CONNECT_TIMEOUT_SECONDS,
                "application_name": "annabelle",
                "options": POSTGRES_BOUNDS,
            },
        )
    engine = create_engine(
        parsed,
        module=driver,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=pool_timeout,
        hide_parameters=True,
        connect_args={"timeout": BUSY_TIMEOUT_MS / 1000, "check_same_thread": False, "isolation_level": None},
    )
    _prepare_sqlite(engine, synchronous, read_only)
    return engine


def _prepare_sqlite(engine: Engine, synchronous: str, read_only: bool) -> None:
    if synchronous not in ("NORMAL", "FULL"):
        raise ConfigMistake("SQLITE_SYNCHRONOUS must be NORMAL or FULL.", field="SQLITE_SYNCHRONOUS")

    def on_connect(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute(f"PRAGMA synchronous={synchronous}")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute(f"PRAGMA query_only={'ON' if read_only else 'OFF'}")
        cursor.close()

    def on_begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)


def checkpoint(engine: Engine) -> None:
    """Fold the WAL into the file. A checkpoint that fails loses nothing: the WAL stays and is read next time."""
    try:
        with contextlib.closing(engine.raw_connection()) as connection:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
    except (driver.Error, DBAPIError) as error:
        _log.warning("%s could not be checkpointed: %s", engine.url.database, error)
