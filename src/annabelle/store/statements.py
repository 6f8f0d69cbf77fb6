"""Statements that are built once and run often, spelled for the engine at hand.

Building a statement costs more than running it, so the frequent ones are module constants with named parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, RowMapping, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Insert

Values = Mapping[str, object]


class InsertNew:
    """INSERT of a row unless one with the same key is there; tells what was really inserted."""

    def __init__(self, table: Table, key: Sequence[str] = (), *, whole_rows: bool = False) -> None:
        returning = list(table.c) if whole_rows else list(table.primary_key.columns)
        target = list(key) or None  # without one: any unique key
        self._by_engine = {
            "sqlite": sqlite.insert(table).on_conflict_do_nothing(index_elements=target).returning(*returning),
            "postgresql": postgresql.insert(table).on_conflict_do_nothing(index_elements=target).returning(*returning),
        }

    def one(self, connection: Connection, values: Values) -> RowMapping | None:
        """The row as it was inserted; None when it was there already."""
        return connection.execute(self._by_engine[connection.dialect.name], values).mappings().first()

    def many(self, connection: Connection, rows: Sequence[Values]) -> Sequence[RowMapping]:
        """The rows that were inserted, in no particular order."""
        return connection.execute(self._by_engine[connection.dialect.name], rows).mappings().all()


class InsertOrUpdate:
    """INSERT of a row, or an update of the one with the same key, as far as `only_if` allows."""

    def __init__(
        self, table: Table, key: Sequence[str], changed: Sequence[str], only_if: ColumnElement[bool] | None = None
    ) -> None:
        self._by_engine: dict[str, Insert] = {}
        for name, statement in (("sqlite", sqlite.insert(table)), ("postgresql", postgresql.insert(table))):
            new = {column: statement.excluded[column] for column in changed}
            self._by_engine[name] = statement.on_conflict_do_update(index_elements=key, set_=new, where=only_if)

    def __call__(self, connection: Connection, values: Values | Sequence[Values]) -> None:
        connection.execute(self._by_engine[connection.dialect.name], values)
