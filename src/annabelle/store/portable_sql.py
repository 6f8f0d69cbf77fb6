"""Column types and INSERT statements for both SQLite and PostgreSQL, and rows as dataclasses.

Statements are prebuilt: building costs more than running.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import TIMESTAMP, ColumnElement, Connection, Dialect, RowMapping, Select, Table, Text, TypeDecorator
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Insert
from sqlalchemy.types import TypeEngine

from annabelle.core.errors import NotFound

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")


class UtcTimestamp(TypeDecorator[datetime]):
    """An aware point in time: ISO-8601 text on SQLite, timestamptz on PostgreSQL."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[datetime] | TypeEngine[str]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(TIMESTAMP(timezone=True))
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | str | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("A time without a zone can not be stored.")
        utc = value.astimezone(UTC)
        return utc if dialect.name == "postgresql" else utc.isoformat(timespec="microseconds")

    def process_result_value(self, value: datetime | str | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)


class SafeText(TypeDecorator[str]):
    """Text from people and models. Replaces what no engine can store: NUL and lone surrogates."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        try:
            value.encode()
        except UnicodeEncodeError:
            value = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value.replace("\x00", "\ufffd") if "\x00" in value else value


class JsonText(TypeDecorator[object]):
    """Any JSON value, stored as escaped text, so that strings round-trip exactly."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:
        return None if value is None else json.loads(value)


RowValues = Mapping[str, object]
Query = Select[*tuple[object, ...]]


def field_values(new: DataclassInstance) -> dict[str, object]:
    """The values of a new row whose columns are the fields of a dataclass."""
    return {field.name: getattr(new, field.name) for field in fields(new)}


def from_row(kind: Callable[..., T], row: RowMapping) -> T:
    """An object whose fields are the columns of a row."""
    return kind(**{str(name): value for name, value in row.items()})


def read_all(
    connection: Connection, kind: Callable[..., T], query: Query, parameters: RowValues | None = None
) -> list[T]:
    return [from_row(kind, row) for row in connection.execute(query, parameters).mappings()]


def read_first(
    connection: Connection, kind: Callable[..., T], query: Query, parameters: RowValues | None = None
) -> T | None:
    row = connection.execute(query, parameters).mappings().first()
    return None if row is None else from_row(kind, row)


def require_found(found: T | None, what: str, hint: str | None = None) -> T:
    """What was read; raises NotFound for `what` if there is none."""
    if found is None:
        raise NotFound(f"There is no {what}.", hint=hint)
    return found


class InsertNew:
    """INSERT that skips rows whose key exists, and returns what was inserted."""

    def __init__(self, table: Table, key: Sequence[str] = (), *, whole_rows: bool = False) -> None:
        returning = list(table.c) if whole_rows else list(table.primary_key.columns)
        target = list(key) or None  # None: any unique key
        self._by_engine = {
            "sqlite": sqlite.insert(table).on_conflict_do_nothing(index_elements=target).returning(*returning),
            "postgresql": postgresql.insert(table).on_conflict_do_nothing(index_elements=target).returning(*returning),
        }

    def insert(self, connection: Connection, values: RowValues) -> RowMapping | None:
        """Returns the inserted row; None if it existed."""
        return connection.execute(self._by_engine[connection.dialect.name], values).mappings().first()

    def insert_many(self, connection: Connection, rows: Sequence[RowValues]) -> Sequence[RowMapping]:
        """Returns the inserted rows, unordered."""
        return connection.execute(self._by_engine[connection.dialect.name], rows).mappings().all()


class InsertOrUpdate:
    """INSERT, or update of the row with the same key if `only_if` allows."""

    def __init__(
        self, table: Table, key: Sequence[str], changed: Sequence[str], only_if: ColumnElement[bool] | None = None
    ) -> None:
        self._by_engine: dict[str, Insert] = {}
        for name, statement in (("sqlite", sqlite.insert(table)), ("postgresql", postgresql.insert(table))):
            new = {column: statement.excluded[column] for column in changed}
            self._by_engine[name] = statement.on_conflict_do_update(index_elements=key, set_=new, where=only_if)

    def __call__(self, connection: Connection, values: RowValues | Sequence[RowValues]) -> None:
        connection.execute(self._by_engine[connection.dialect.name], values)
