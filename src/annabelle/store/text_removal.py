"""Masks a text in tables, keeping their rows, and checks whether a file still contains it (TRU-09)."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import IO, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from annabelle.core.secrets.forget_mask import FORGOTTEN_MASK, PAYLOAD_FIELDS, ForgetMatcher, mask_json
from annabelle.core.tools import JsonObject
from annabelle.store.engine import driver
from annabelle.store.file_lock import open_beside_locks
from annabelle.store.portable_sql import JsonText, SafeText
from annabelle.store.tables import approvals, events, feed_items, goals, messages, metadata, to_remember, tool_calls

FoundRow = dict[str, object]

_NAME_COLUMNS = ("chat_id", "sender_id", "external_id")
_ALIAS = "forgotten-"
_BATCH = 500


@dataclass(frozen=True, slots=True)
class TextColumns:
    """Columns of a table that may contain people's words, and its keys."""

    table: str
    keys: tuple[str, ...]
    words: tuple[str, ...] = ()
    json: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    """Columns to return for each row with the text."""
    schema: str | None = None

    @classmethod
    def from_table(cls, table: Table, returned: Iterable[str] = ()) -> TextColumns:
        """Text and JSON columns of a table are content; chats, senders and what has to be unique are names."""
        texts = [column.name for column in table.c if isinstance(column.type, SafeText)]
        unique = {
            column.name
            for constraint in table.constraints
            if isinstance(constraint, sa.UniqueConstraint)
            for column in constraint.columns
        }
        return cls(
            table.name,
            keys=tuple(column.name for column in table.primary_key),
            words=tuple(name for name in texts if name not in unique),
            json=tuple(column.name for column in table.c if isinstance(column.type, JsonText)),
            names=(*(name for name in _NAME_COLUMNS if name in table.c), *(name for name in texts if name in unique)),
            returned=tuple(returned),
        )

    @property
    def empty(self) -> bool:
        return not (self.words or self.json or self.names)

    def plain_table(self) -> sa.TableClause:
        """The table with untyped columns: JSON is read and written as stored text."""
        wanted = dict.fromkeys((*self.keys, *self.words, *self.json, *self.names, *self.returned))
        columns: list[sa.ColumnClause[object]] = [sa.column(name) for name in wanted]
        return sa.table(self.table, *columns, schema=self.schema)


@dataclass(frozen=True, slots=True)
class TextRemoval:
    """The text to find, whose rows to search, and whether to remove it or only count it."""

    matcher: ForgetMatcher
    apply: bool
    user_id: str | None = None
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def alias(self, name: str) -> str:
        """A substitute for a name that must stay unique: always the same, and not reversible."""
        if name.startswith(_ALIAS):
            return name
        return f"{_ALIAS}{hashlib.blake2b(name.encode(), key=self.salt, digest_size=8).hexdigest()}"

    def as_dry_run(self) -> TextRemoval:
        return replace(self, apply=False)

    def owner_filter(self, table: Table) -> sa.ColumnElement[bool]:
        """Condition for the person's rows, or those of their goals; true for a table without either."""
        # Without the table's name, because it is also used in queries on its `plain_table`.
        user_id: sa.ColumnClause[str] = sa.column("user_id")
        goal_id: sa.ColumnClause[str] = sa.column("goal_id")
        if self.user_id is None or not {user_id.name, goal_id.name} & set(table.c.keys()):
            return sa.true()
        if user_id.name in table.c:
            return user_id == self.user_id
        return goal_id.in_(sa.select(goals.c.id).where(goals.c.user_id == self.user_id))

    def run(
        self, connection: Connection, cells: TextColumns, rows: sa.ColumnElement[bool] | None = None
    ) -> list[FoundRow]:
        """Returns the rows with the text; with `apply`, masks it."""
        if cells.empty:
            return []
        table = cells.plain_table()
        query = sa.select(*table.c).where(sa.true() if rows is None else rows)
        found: list[tuple[FoundRow, dict[str, str]]] = []
        for mapping in connection.execute(query, execution_options={"yield_per": _BATCH}).mappings():
            row: FoundRow = {str(name): value for name, value in mapping.items()}
            if change := self._masked_values(cells, row):
                found.append((row, change))
        for row, change in found if self.apply else []:
            same = sa.and_(*(table.c[key] == row[key] for key in cells.keys))
            connection.execute(sa.update(table).where(same).values(change))
        return [row for row, _change in found]

    def _masked_values(self, cells: TextColumns, row: FoundRow) -> dict[str, str]:
        held = {name: value for name, value in row.items() if isinstance(value, str)}
        new = {name: FORGOTTEN_MASK for name in cells.words if name in held and self.matcher.found_in(held[name])}
        for name in cells.json:
            if name in held:
                new[name] = mask_json(self.matcher, held[name], payload=name in PAYLOAD_FIELDS)
        new |= {
            name: self.alias(held[name]) for name in cells.names if name in held and self.matcher.found_in(held[name])
        }
        return {name: value for name, value in new.items() if value != held[name]}


T = TypeVar("T")

FORGOTTEN_DIGEST = "forgotten"
"""Replaces a hash, so that an approval with it matches no call any more."""
_MESSAGE_COLUMNS = ("message_id", "reply_to")
_select_pieces = (
    sa.select(events.c.seq, events.c.message_id, events.c.step, events.c.attempt, events.c.type, events.c.data)
    .where(events.c.type.in_(("text", "think")))
    .order_by(events.c.message_id, events.c.step, events.c.attempt, events.c.type, events.c.seq)
)


def remove_text(connection: Connection, sweep: TextRemoval) -> dict[str, int]:
    """Searches every table and returns the number of rows with the text for each."""
    counts: dict[str, int] = {}
    touched: set[str] = set()
    for table in metadata.sorted_tables:
        marks = [name for name in (*_MESSAGE_COLUMNS, *(("id",) if table is messages else ())) if name in table.c]
        rows = sweep.run(connection, TextColumns.from_table(table, marks), sweep.owner_filter(table))
        touched |= {str(row[mark]) for row in rows for mark in marks if row[mark] is not None}
        counts[table.name] = len(rows)
        if table is feed_items and sweep.apply:
            _remove_digests(connection, [str(row["id"]) for row in rows])
    counts["events"] += _empty_split_sentences(connection, sweep)
    if sweep.apply:
        _remove_references(connection, touched)
    return {name: count for name, count in counts.items() if count}


def _empty_split_sentences(connection: Connection, sweep: TextRemoval) -> int:
    """Empties streamed pieces that contain the text only when joined: each piece is an event."""
    query = _select_pieces.where(sweep.owner_filter(events))
    rows = (
        cast("FoundRow", dict(row))
        for row in connection.execute(query, execution_options={"yield_per": _BATCH}).mappings()
    )
    emptied: list[int] = []
    for pieces in _group_pieces(rows):
        if _pieces_match(sweep, pieces):
            emptied += [cast("int", row["seq"]) for row in pieces]
    if sweep.apply:
        for some in _split_batches(emptied):
            connection.execute(sa.update(events).where(events.c.seq.in_(some)).values(data={"text": ""}))
    return len(emptied)


def _group_pieces(rows: Iterable[FoundRow]) -> Iterator[list[FoundRow]]:
    """Groups the pieces of each attempt of each step, without the final whole text."""

    def same(row: FoundRow) -> tuple[object, ...]:
        return row["message_id"], row["step"], row["attempt"], row["type"]

    for _same, group in groupby(rows, same):
        pieces = [row for row in group if not cast("JsonObject", row["data"]).get("final")]
        if len(pieces) > 1:
            yield pieces


def _pieces_match(sweep: TextRemoval, pieces: list[FoundRow]) -> bool:
    return sweep.matcher.found_in("".join(str(cast("JsonObject", row["data"]).get("text", "")) for row in pieces))


def _remove_references(connection: Connection, touched: set[str]) -> None:
    """Removes argument hashes, which would confirm a guess, except of running turns, and queue entries for memory."""
    running = sa.select(messages.c.id).where(messages.c.state == "running")
    for some in _split_batches(sorted(touched)):
        ended = sa.and_(tool_calls.c.message_id.in_(some), tool_calls.c.message_id.not_in(running))
        connection.execute(sa.update(tool_calls).where(ended).values(arguments_hash=FORGOTTEN_DIGEST))
        connection.execute(sa.delete(to_remember).where(to_remember.c.message_id.in_(some)))
        asked = sa.update(approvals).where(approvals.c.message_id.in_(some))
        connection.execute(asked.values(digest=FORGOTTEN_DIGEST))


def _remove_digests(connection: Connection, item_ids: list[str]) -> None:
    """Removes the hashes of what the feed told, which would confirm a guess, too. Each stays one of a kind."""
    digest = sa.literal(f"{FORGOTTEN_DIGEST}:") + feed_items.c.id
    for some in _split_batches(item_ids):
        connection.execute(sa.update(feed_items).where(feed_items.c.id.in_(some)).values(digest=digest))


def _split_batches(values: list[T]) -> Iterator[list[T]]:
    for start in range(0, len(values), _BATCH):
        yield values[start : start + _BATCH]


_CHUNK = 8_000_000
_OVERLAP = 100_000
_SQLITE = b"SQLite format 3\x00"


def bytes_contain(path: Path, matcher: ForgetMatcher) -> bool:
    """Whether a file's bytes contain the text; misses long rows split over database pages."""
    with path.open("rb") as file:
        return _stream_contains(file, matcher)


def database_bytes_contain(path: Path, matcher: ForgetMatcher) -> bool:
    """Like `bytes_contain`, for a database that may be open."""
    with open_beside_locks(path) as stream:
        return _stream_contains(stream, matcher)


def _stream_contains(stream: IO[bytes], matcher: ForgetMatcher) -> bool:
    tail = b""
    while chunk := stream.read(_CHUNK):
        if matcher.found_in_bytes(tail + chunk):
            return True
        tail = chunk[-_OVERLAP:]
    return False


def file_contains(path: Path, matcher: ForgetMatcher) -> bool:
    """Like `bytes_contain`, for a file that is not being written; also reads the rows of a database."""
    return bytes_contain(path, matcher) or (_is_database(path) and _rows_contain(path, matcher))


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _rows_contain(path: Path, matcher: ForgetMatcher) -> bool:
    with contextlib.closing(driver.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as reading:
        try:
            return any(matcher.found_in(cell) for cell in _iterate_cells(reading))
        except driver.Error:
            return False  # a damaged copy: its bytes were searched


def _iterate_cells(reading: driver.Connection) -> Iterator[str]:
    listing = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    names: Sequence[tuple[str]] = reading.execute(listing).fetchall()
    for (name,) in names:
        quoted = name.replace('"', '""')
        for row in reading.execute(f'SELECT * FROM "{quoted}"'):  # noqa: S608  a name the file itself told
            yield from (cell for cell in row if isinstance(cell, str))
