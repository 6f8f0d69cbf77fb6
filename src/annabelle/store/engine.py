"""Database engines for SQLite and PostgreSQL, vacuuming and error messages. The SQLite driver ships FTS5."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry

from annabelle.core.errors import AnnabelleError, ConfigMistake, StorageTrouble, Unavailable

if TYPE_CHECKING:
    import sqlite3 as driver
else:
    import sqlean.dbapi2 as driver


__all__ = ["driver"]


DialectName = Literal["sqlite", "postgresql"]

_log = logging.getLogger(__name__)

BUSY_TIMEOUT_MS = 10_000
CONNECT_TIMEOUT_SECONDS = 10
POSTGRES_BOUNDS = "-c lock_timeout=15s -c statement_timeout=60s -c idle_in_transaction_session_timeout=60s"


def sqlite_url(path: Path) -> str:
    return URL.create("sqlite", database=str(path)).render_as_string()


def parse_url(url: str) -> URL:
    """Parses a database URL for SQLAlchemy; postgresql:// gets the driver we ship."""
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
    """Makes an engine. On SQLite a transaction takes the write lock at its start, so that none fails later.

    Errors leave out the parameters of statements: they contain what people said, and errors are logged and shown.
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
    """Merges the WAL into the file. If that fails nothing is lost: the WAL is read next time."""
    try:
        with contextlib.closing(engine.raw_connection()) as connection:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
    except (driver.Error, DBAPIError) as error:
        _log.warning("%s could not be checkpointed: %s", engine.url.database, error)


_POSTGRES_MINUTES = 30


def vacuum(engine: Engine, tables: Sequence[str] = ()) -> None:
    """Rewrites a SQLite file with its WAL; on PostgreSQL these tables, given as `"table"` or `"schema"."table"`."""
    if engine.dialect.name == "sqlite":
        _vacuum_file(engine)
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"SET statement_timeout = '{_POSTGRES_MINUTES}min'"))
        try:
            for table in tables:
                connection.execute(text(f"VACUUM FULL {table}"))
        finally:
            connection.execute(text("RESET statement_timeout"))


def _vacuum_file(engine: Engine) -> None:
    # Bypasses SQLAlchemy, which would open a transaction, where SQLite refuses to vacuum.
    with contextlib.closing(engine.raw_connection()) as connection:
        cursor = connection.cursor()
        cursor.execute("VACUUM")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        row = cursor.fetchone()
        cursor.close()
    if row is None or row[0] != 0:
        raise StorageTrouble(
            f"The journal of {engine.url.database} could not be emptied: another program reads it.",
            hint="Close what has the database open, and try again.",
        )


_RETRIED_STATES = frozenset({"40001", "40P01"})  # serialization failure, deadlock
_FULL_STATES = frozenset({"53100", "53200"})  # disk full, out of memory


@dataclass(frozen=True, slots=True)
class DatabaseLocation:
    """Location of a database, for error messages."""

    url: URL
    backups: Path | None = None
    restore_command: str | None = None
    """The command that restores a backup, if there is one."""

    @property
    def file(self) -> Path | None:
        return Path(self.url.database) if self.url.drivername == "sqlite" and self.url.database else None

    @property
    def name(self) -> str:
        return str(self.file) if self.file else f"{self.url.host or 'localhost'}:{self.url.port or 5432}"

    def newest_backup(self) -> Path | None:
        found = list_backups(self.file, self.backups) if self.file and self.backups else []
        return found[-1] if found else None


def list_backups(file: Path, folder: Path) -> list[Path]:
    """Lists the backups of a database file, oldest first."""
    return sorted(folder.glob(f"{file.stem}-*{file.suffix}"), key=lambda path: path.name.rsplit("-", 1)[-1])


def get_sqlstate(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def is_transient(error: DBAPIError) -> bool:
    """Whether running the transaction again can succeed."""
    return get_sqlstate(error) in _RETRIED_STATES


def describe_error(error: DBAPIError | PoolTimeout, place: DatabaseLocation) -> AnnabelleError | None:
    """Returns the error to show instead; None if it is a bug that users cannot fix."""
    if isinstance(error, PoolTimeout):
        return Unavailable(f"The database {place.name} is too busy.", hint="Try again in a moment.")
    return _describe_sqlite(error, place) if place.file else _describe_postgres(error, place)


def read_only_error(place: DatabaseLocation) -> StorageTrouble:
    return StorageTrouble(
        f"The database {place.name} is read-only.", hint="Give whoever runs Annabelle the right to write it."
    )


def damaged_error(place: DatabaseLocation) -> StorageTrouble:
    backup = place.newest_backup()
    if backup is None:
        hint = "There is no backup; move the file away to start anew."
    elif place.restore_command is None:
        hint = f"Restore the newest backup, {backup}."
    else:
        hint = f"Restore the newest backup, {backup}, with `{place.restore_command}`."
    return StorageTrouble(f"The database {place.name} is damaged.", hint=hint)


def _describe_sqlite(error: DBAPIError, place: DatabaseLocation) -> StorageTrouble | None:
    name, said = place.name, str(getattr(error.orig, "sqlite_errorname", ""))
    if said.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return damaged_error(place)
    if said == "SQLITE_FULL":
        return StorageTrouble(
            f"The disk is full: {name} could not be written.", hint="Free some space; nothing is lost."
        )
    if said.startswith("SQLITE_READONLY"):
        return read_only_error(place)
    if said.startswith("SQLITE_CANTOPEN"):
        return StorageTrouble(f"The database {name} can not be opened.", hint="Check its folder and permissions.")
    if said.startswith("SQLITE_IOERR"):
        return StorageTrouble(f"The disk failed while {name} was used.", hint="Check the disk, then start again.")
    if said.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StorageTrouble(f"The database {name} is locked by another program.", hint="Close what has it open.")
    return None


def _describe_postgres(error: DBAPIError, place: DatabaseLocation) -> AnnabelleError | None:
    state = get_sqlstate(error)
    if state in _FULL_STATES:
        return StorageTrouble(
            f"The database server {place.name} has no space left.", hint="Free some; nothing is lost."
        )
    if state in ("28P01", "28000", "3D000"):
        return StorageTrouble(
            f"The database server {place.name} refused: {_first_line(error)}.", hint="Check DATABASE_URL."
        )
    if error.connection_invalidated or (state is None and type(error).__name__ == "OperationalError"):
        return Unavailable(
            f"The database server {place.name} can not be reached: {_first_line(error)}.",
            hint="Start it, or check DATABASE_URL.",
        )
    if state in ("57P01", "57P02", "57P03", "57014", "55P03", "08006"):
        return Unavailable(f"The database server {place.name} is not ready: {_first_line(error)}.", hint="Try again.")
    return None


def _first_line(error: DBAPIError) -> str:
    lines = str(error.orig).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no reason given"
