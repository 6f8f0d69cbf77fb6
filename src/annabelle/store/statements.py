"""The few statements that both engines spell alike but SQLAlchemy does not."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Column, Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

Values = dict[str, object]


def insert(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """An INSERT that can say what happens on conflict, for the engine at hand."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)


def insert_new(connection: Connection, table: Table, values: Values, conflict: Sequence[Column[str]]) -> bool:
    """Insert a row unless one with the same key is there; whether it was new."""
    statement = insert(connection, table).on_conflict_do_nothing(index_elements=list(conflict))
    return connection.execute(statement, values).rowcount == 1
