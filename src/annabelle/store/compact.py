"""Rewrites a database so that nothing of deleted rows is left in its free pages or its journal (TRU-09)."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from sqlalchemy import Engine, text

from annabelle.core.errors import StorageTrouble

_POSTGRES_MINUTES = 30


def compact(engine: Engine, tables: Sequence[str] = ()) -> None:
    """A SQLite file as a whole with its WAL; on PostgreSQL these tables, given as `"schema"."table"` or `"table"`.

    What the server itself keeps, its WAL and its own backups, is beyond us.
    """
    if engine.dialect.name == "sqlite":
        _compact_file(engine)
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"SET statement_timeout = '{_POSTGRES_MINUTES}min'"))
        try:
            for table in tables:
                connection.execute(text(f"VACUUM FULL {table}"))
        finally:
            connection.execute(text("RESET statement_timeout"))


def _compact_file(engine: Engine) -> None:
    # Past SQLAlchemy, which would open a transaction, in which SQLite refuses to vacuum.
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
