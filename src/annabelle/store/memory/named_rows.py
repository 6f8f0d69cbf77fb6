"""Rows of which each has a name that no other row of its owner has: contacts by address, projects by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, select, update
from sqlalchemy.exc import IntegrityError

from annabelle.core.errors import Conflict, NotFound
from annabelle.core.messages import now
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.query_parts import load_row
from annabelle.store.portable_sql import InsertNew, RowValues

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


class NamedRows(Generic[T]):
    """`taken` is the sentence about a name that another row has, with {which} and {name}."""

    def __init__(self, table: Table, kind: type[T], name: str, taken: str) -> None:
        self._table, self._kind, self._name, self._taken = table, kind, table.c[name], taken
        self._what = table.name.removesuffix("s")
        self._insert = InsertNew(table, ("user_id", "agent_id", name))
        self._empty = {column.name: None for column in table.c if column.nullable}

    def add(self, connection: Connection, owner: Owner, values: RowValues) -> T:
        """Adds a row; Conflict if another one has the name."""
        at = now()
        row = {**self._empty, "created_at": at, "updated_at": at, **values, **owner.columns()}
        made = self._insert.insert(connection, row)
        if made is None:
            raise self._conflict(connection, owner, str(values[self._name.name]))
        return self.get(connection, owner, made["id"])

    def get(self, connection: Connection, owner: Owner, row_id: int) -> T:
        """Returns a row of this owner; NotFound for anyone else's."""
        found = self.find(connection, owner, row_id)
        if found is None:
            raise NotFound(f"There is no {self._what} {row_id}.", hint=f"list_{self._what}s shows the ones there are.")
        return found

    def find(self, connection: Connection, owner: Owner, row_id: int) -> T | None:
        """Like `get`, but returns None for a missing one."""
        return self._find(connection, owner, self._table.c.id == row_id)

    def find_by_name(self, connection: Connection, owner: Owner, name: str) -> T | None:
        return self._find(connection, owner, self._name == name)

    def change(self, connection: Connection, owner: Owner, row_id: int, values: RowValues) -> T:
        """Changes only the given values; None clears optional ones. Conflict if another row has the name."""
        self.get(connection, owner, row_id)
        query = update(self._table).where(owner.row_filter(self._table), self._table.c.id == row_id)
        try:
            with connection.begin_nested():
                connection.execute(query.values({"updated_at": now(), **values}))
        except IntegrityError as error:
            raise self._conflict(connection, owner, str(values.get(self._name.name))) from error
        return self.get(connection, owner, row_id)

    def _find(self, connection: Connection, owner: Owner, condition: ColumnElement[bool]) -> T | None:
        query = select(self._table).where(owner.row_filter(self._table), condition)
        row = connection.execute(query).mappings().first()
        return None if row is None else load_row(self._kind, row)

    def _conflict(self, connection: Connection, owner: Owner, name: str) -> Conflict:
        query = select(self._table.c.id).where(owner.row_filter(self._table), self._name == name)
        existing = connection.execute(query).scalar()
        # Names only the number: a name may be someone else's words, and errors are read as ours.
        which = f"{self._what.capitalize()} {existing}" if existing else f"Another {self._what}"
        return Conflict(self._taken.format(which=which, name=name), hint=f"Change that one with update_{self._what}.")
