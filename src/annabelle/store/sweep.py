"""Goes through tables for a text: what holds it is masked, what a row is held together by stays (TRU-09)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from annabelle.core.needle import Needle
from annabelle.store.columns import Json, Words

Alias = Callable[[str], str]
"""Gives a name that must stay one of a kind another that says nothing, always the same one."""

Found = dict[str, object]

_NAMES = ("chat_id", "sender_id", "external_id")
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Cells:
    """The columns of a table that may hold what people said, and how its rows are told apart."""

    table: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    names: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """Columns that are handed back of each row that holds the text."""
    schema: str | None = None

    @classmethod
    def of(cls, table: Table, also: Iterable[str] = ()) -> Cells:
        """What a table of ours says about itself: words and JSON are content, chats and senders are names."""
        content = tuple(column.name for column in table.c if isinstance(column.type, Words | Json))
        names = tuple(name for name in _NAMES if name in table.c)
        return cls(table.name, tuple(column.name for column in table.primary_key), content, names, tuple(also))

    def shadow(self) -> sa.TableClause:
        """The table with plain columns: JSON is read and written as the text it is stored as."""
        wanted = dict.fromkeys((*self.keys, *self.columns, *self.names, *self.also))
        columns: list[sa.ColumnClause[object]] = [sa.column(name) for name in wanted]
        return sa.table(self.table, *columns, schema=self.schema)


@dataclass(frozen=True, slots=True)
class Sweep:
    """What to look for, in whose rows, and whether to take it out or only to count it."""

    needle: Needle
    alias: Alias
    apply: bool
    user_id: str | None = None

    def own(self, table: Table) -> sa.ColumnElement[bool]:
        """The rows of the person who asks; a table that belongs to nobody is everybody's."""
        if self.user_id is None or "user_id" not in table.c:
            return sa.true()
        return table.c.user_id == self.user_id

    def run(self, connection: Connection, cells: Cells, rows: sa.ColumnElement[bool] | None = None) -> list[Found]:
        """The rows that hold the text; with `apply` they hold it no longer."""
        if not cells.columns and not cells.names:
            return []
        table = cells.shadow()
        query = sa.select(*table.c).where(sa.true() if rows is None else rows)
        found: list[tuple[Found, dict[str, str]]] = []
        for mapping in connection.execution_options(yield_per=_BATCH).execute(query).mappings():
            row: Found = {str(name): value for name, value in mapping.items()}
            if change := self._change(cells, row):
                found.append((row, change))
        for row, change in found if self.apply else []:
            same = sa.and_(*(table.c[key] == row[key] for key in cells.keys))
            connection.execute(sa.update(table).where(same).values(change))
        return [row for row, _change in found]

    def _change(self, cells: Cells, row: Found) -> dict[str, str]:
        change: dict[str, str] = {}
        for name in cells.columns:
            value = row[name]
            if isinstance(value, str) and (masked := self.needle.masked_text(value)) != value:
                change[name] = masked
        for name in cells.names:
            value = row[name]
            if isinstance(value, str) and self.needle.within(value):
                change[name] = self.alias(value)
        return change
