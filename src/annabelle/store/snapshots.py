"""Copies of our PostgreSQL tables in a schema of their own, made before a migration, and the way back (I-19)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, inspect, text

from annabelle.core.errors import NotFound
from annabelle.store.backup import KEEP, STAMP
from annabelle.store.engine import make_engine
from annabelle.store.migrate import HUB, Plan
from annabelle.store.revisions import run


def take(connection: Connection, revision: str, at: datetime, plan: Plan = HUB) -> str:
    """Copy every table inside the caller's transaction, and drop the oldest copies; the name of the new schema."""
    schema = f"{plan.snapshots}{revision}_{at.strftime(STAMP).lower()}"
    connection.execute(text(f'CREATE SCHEMA "{schema}"'))
    for table in _tables(connection, plan):
        connection.execute(text(f'CREATE TABLE "{schema}"."{table}" AS TABLE "{table}"'))
    for old in listing(connection, plan)[:-KEEP]:
        connection.execute(text(f'DROP SCHEMA "{old}" CASCADE'))
    return schema


def listing(connection: Connection, plan: Plan = HUB) -> list[str]:
    """The snapshots of one set of tables in the database, oldest first."""
    names = [name for name in inspect(connection).get_schema_names() if name.startswith(plan.snapshots)]
    return sorted(names, key=lambda name: name.rsplit("_", 1)[-1])


def restore(url: str, schema: str, plan: Plan = HUB) -> None:
    """Put a snapshot in the place of the tables, at the revision it was taken at; all of it or nothing."""
    engine = make_engine(url, pool_size=1)
    try:
        with engine.begin() as connection:
            if schema not in listing(connection, plan):
                raise NotFound(f"There is no backup {schema}.")
            taken_at = text(f'SELECT version_num FROM "{schema}".{plan.version_table}')  # noqa: S608  a name of ours
            revision = str(connection.execute(taken_at).scalar_one())
            for table in reversed(_tables(connection, plan)):
                connection.execute(text(f'DROP TABLE "{table}"'))
            run(connection, plan.folder, revision, plan.version_table)
            _fill(connection, schema, plan)
    finally:
        engine.dispose()


def _fill(connection: Connection, schema: str, plan: Plan) -> None:
    inspector = inspect(connection)
    for table in _tables(connection, plan):
        if table == plan.version_table:
            continue
        # What the database works out by itself can not be written.
        columns = [column for column in inspector.get_columns(table) if "computed" not in column]
        names = ", ".join(f'"{column["name"]}"' for column in columns)
        copy = f'INSERT INTO "{table}" ({names}) SELECT {names} FROM "{schema}"."{table}"'  # noqa: S608
        connection.execute(text(copy))
        for column in columns:
            if str(column.get("default") or "").startswith("nextval"):
                counter = f"pg_get_serial_sequence('{table}', '{column['name']}')"
                highest = f'SELECT max("{column["name"]}") FROM "{table}"'  # noqa: S608
                connection.execute(text(f"SELECT setval({counter}, coalesce(({highest}), 0) + 1, false)"))


def _tables(connection: Connection, plan: Plan) -> list[str]:
    """Those of one set, those that others refer to first. Another set in the same database is none of its business."""
    present = set(inspect(connection).get_table_names())
    names = (plan.version_table, *(table.name for table in plan.tables.sorted_tables), *plan.beside)
    return [name for name in names if name in present]
