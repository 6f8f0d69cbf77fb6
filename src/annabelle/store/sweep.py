"""Goes through tables for a text: what holds it is masked, what a row is held together by stays (TRU-09)."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from annabelle.core.masking import MASK, PAYLOAD, masked_json
from annabelle.core.needle import Needle
from annabelle.store.columns import Json, Words

Found = dict[str, object]

_NAMES = ("chat_id", "sender_id", "external_id")
_ALIAS = "forgotten-"
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Cells:
    """The columns of a table that may hold what people said, and how its rows are told apart."""

    table: str
    keys: tuple[str, ...]
    words: tuple[str, ...] = ()
    json: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """Columns that are handed back of each row that holds the text."""
    schema: str | None = None

    @classmethod
    def of(cls, table: Table, also: Iterable[str] = ()) -> Cells:
        """What a table of ours says about itself: words and JSON are content, chats and senders are names."""
        return cls(
            table.name,
            keys=tuple(column.name for column in table.primary_key),
            words=tuple(column.name for column in table.c if isinstance(column.type, Words)),
            json=tuple(column.name for column in table.c if isinstance(column.type, Json)),
            names=tuple(name for name in _NAMES if name in table.c),
            also=tuple(also),
        )

    @property
    def empty(self) -> bool:
        return not (self.words or self.json or self.names)

    def shadow(self) -> sa.TableClause:
        """The table with plain columns: JSON is read and written as the text it is stored as."""
        wanted = dict.fromkeys((*self.keys, *self.words, *self.json, *self.names, *self.also))
        columns: list[sa.ColumnClause[object]] = [sa.column(name) for name in wanted]
        return sa.table(self.table, *columns, schema=self.schema)


@dataclass(frozen=True, slots=True)
class Sweep:
    """What to look for, in whose rows, and whether to take it out or only to count it."""

    needle: Needle
    apply: bool
    user_id: str | None = None
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def alias(self, name: str) -> str:
        """Another name, for one that must stay one of a kind: always the same, and nothing can be read from it."""
        if name.startswith(_ALIAS):
            return name
        return f"{_ALIAS}{hashlib.blake2b(name.encode(), key=self.salt, digest_size=8).hexdigest()}"

    def looking(self) -> Sweep:
        """The same search, which changes nothing."""
        return replace(self, apply=False)

    def own(self, table: Table) -> sa.ColumnElement[bool]:
        """The rows of the person who asks; a table that belongs to nobody is everybody's."""
        if self.user_id is None or "user_id" not in table.c:
            return sa.true()
        # Without the table's name: it also stands in queries on its shadow.
        user_id: sa.ColumnClause[str] = sa.column("user_id")
        return user_id == self.user_id

    def run(self, connection: Connection, cells: Cells, rows: sa.ColumnElement[bool] | None = None) -> list[Found]:
        """The rows that hold the text; with `apply` they hold it no longer."""
        if cells.empty:
            return []
        table = cells.shadow()
        query = sa.select(*table.c).where(sa.true() if rows is None else rows)
        found: list[tuple[Found, dict[str, str]]] = []
        for mapping in connection.execute(query, execution_options={"yield_per": _BATCH}).mappings():
            row: Found = {str(name): value for name, value in mapping.items()}
            if change := self._change(cells, row):
                found.append((row, change))
        for row, change in found if self.apply else []:
            same = sa.and_(*(table.c[key] == row[key] for key in cells.keys))
            connection.execute(sa.update(table).where(same).values(change))
        return [row for row, _change in found]

    def _change(self, cells: Cells, row: Found) -> dict[str, str]:
        held = {name: value for name, value in row.items() if isinstance(value, str)}
        new = {name: MASK for name in cells.words if name in held and self.needle.within(held[name])}
        for name in cells.json:
            if name in held:
                new[name] = masked_json(self.needle, held[name], payload=name in PAYLOAD)
        new |= {name: self.alias(held[name]) for name in cells.names if name in held and self.needle.within(held[name])}
        return {name: value for name, value in new.items() if value != held[name]}
