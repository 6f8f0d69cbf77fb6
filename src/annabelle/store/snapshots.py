"""Copies of our PostgreSQL tables in a schema of their own, made before a migration, and the way back (I-19)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, inspect, text

from annabelle.core.errors import NotFound
from annabelle.store.backup import KEEP, STAMP
from annabelle.store.engine import make_engine
from annabelle.store.migrations import FOLDER
from annabelle.store.revisions import run
from annabelle.store.tables import metadata

_PREFIX = "backup_"
_VERSION = "alembic_version"


def take(connection: Connection, revision: str, at: datetime) -> str:
    """Copy every table inside the caller's transaction, and drop the oldest copies; the name of the new schema."""
    schema = f"{_PREFIX}{revision}_{at.strftime(STAMP).lower()}"
    connection.execute(text(f'CREATE SCHEMA "{schema}"'))
    for table in _tables(connection):
        connection.execute(text(f'CREATE TABLE "{schema}"."{table}" AS TABLE "{table}"'))
    for old in listing(connection)[:-KEEP]:
        connection.execute(text(f'DROP SCHEMA "{old}" CASCADE'))
    return schema


def listing(connection: Connection) -> list[str]:
    """The snapshots in the database, oldest first."""
    names = [name for name in inspect(connection).get_schema_names() if name.startswith(_PREFIX)]
    return sorted(names, key=lambda name: name.rsplit("_", 1)[-1])


def restore(url: str, schema: str) -> None:
    """Put a snapshot in the place of the tables, at the revision it was taken at; all of it or nothing."""
    engine = make_engine(url, pool_size=1)
    try:
        with engine.begin() as connection:
            if schema not in listing(connection):
                raise NotFound(f"There is no backup {schema}.")
            taken_at = text(f'SELECT version_num FROM "{schema}".{_VERSION}')  # noqa: S608  a name of ours
            revision = str(connection.execute(taken_at).scalar_one())
            for table in reversed(_tables(connection)):
                connection.execute(text(f'DROP TABLE "{table}"'))
            run(connection, FOLDER, revision)
            _fill(connection, schema)
    finally:
        engine.dispose()


def _fill(connection: Connection, schema: str) -> None:
    inspector = inspect(connection)
    for table in _tables(connection):
        if table == _VERSION:
            continue
        columns = inspector.get_columns(table)
        names = ", ".join(f'"{column["name"]}"' for column in columns)
        copy = f'INSERT INTO "{table}" ({names}) SELECT {names} FROM "{schema}"."{table}"'  # noqa: S608
        connection.execute(text(copy))
        for column in columns:
            if str(column.get("default") or "").startswith("nextval"):
                counter = f"pg_get_serial_sequence('{table}', '{column['name']}')"
                highest = f'SELECT max("{column["name"]}") FROM "{table}"'  # noqa: S608
                connection.execute(text(f"SELECT setval({counter}, coalesce(({highest}), 0) + 1, false)"))


def _tables(connection: Connection) -> list[str]:
    """Ours, those that others refer to first."""
    present = set(inspect(connection).get_table_names())
    return [name for name in (_VERSION, *(table.name for table in metadata.sorted_tables)) if name in present]
