"""Full text of what is remembered: which rows hold the words of a query, best first, on both engines.

A row is indexed by its `text` and by `around`: what belongs to it without being its words, as who said it and when.
Words of a query are always quoted and bound, so nothing a person types is syntax. On SQLite the owner is the upper half of the
index's row number, and a search reads its owner's stretch of the index only (I-30).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, text

from annabelle.store.memory import stems
from annabelle.store.memory.folding import fold, like_pattern, words
from annabelle.store.memory.owner import Kind, Owner

__all__ = ["AROUND_WEIGHT", "INDEXED_CHARACTERS", "Term", "create", "drop", "find", "put", "substring", "terms"]

INDEXED_CHARACTERS = 20_000
"""A longer text is found by its beginning only."""

AROUND_WEIGHT = 0.3
"""What a word in the surroundings counts beside one in the text itself."""

_ROWS = 40
_MASK = (1 << _ROWS) - 1
_COUNTED = 20_000  # PostgreSQL counts no further: a word of so many rows is common enough
_KINDS: tuple[Kind, ...] = ("fact", "conversation")


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a query, and in how many rows of this kind it stands."""

    word: str
    frequency: int


def create(connection: Connection) -> None:
    """Make the index's own tables for the engine at hand; part of the first revision of the memory."""
    for statement in _SQLITE_TABLES if _on_sqlite(connection) else _POSTGRES_TABLES:
        connection.exec_driver_sql(statement)


def put(connection: Connection, kind: Kind, owner: Owner, row_id: int, text: str, around: str = "") -> None:
    """Index a row, or index it anew."""
    values: dict[str, object] = {"text": fold(text[:INDEXED_CHARACTERS]), "around": fold(around[:INDEXED_CHARACTERS])}
    if _on_sqlite(connection):
        number = _number(connection, owner, make=True)
        values["rowid"] = number << _ROWS | row_id
        connection.exec_driver_sql(f"DELETE FROM {kind}_text WHERE rowid = :rowid", values)  # noqa: S608
        connection.exec_driver_sql(
            f"INSERT INTO {kind}_text (rowid, text, around) VALUES (:rowid, :text, :around)",  # noqa: S608
            values,
        )
    else:
        connection.execute(_POSTGRES_PUT, {**values, **owner.columns(), "kind": kind, "row_id": row_id})


def drop(connection: Connection, kind: Kind, row_ids: Iterable[int]) -> None:
    """Take rows out of the index; those it does not have are passed over."""
    ids = list(row_ids)
    if not ids:
        return
    if not _on_sqlite(connection):
        connection.execute(_POSTGRES_DROP, {"kind": kind, "row_ids": ids})
        return
    # Row ids are unique within a kind, whoever owns them, and owners are few.
    numbers = [int(row[0]) for row in connection.exec_driver_sql("SELECT id FROM text_owners")]
    keys = [(number << _ROWS | row_id,) for number in numbers for row_id in ids]
    if keys:
        connection.exec_driver_sql(f"DELETE FROM {kind}_text WHERE rowid = ?", keys)  # noqa: S608


def terms(connection: Connection, kind: Kind, query: str) -> list[Term]:
    """The words of a query, each once, in their order, with how common they are."""
    found = list(dict.fromkeys(words(query)))
    if not found:
        return []
    if _on_sqlite(connection):
        return [Term(word, stems.frequency(connection, kind, word)) for word in found]
    counted = {
        word: int(connection.execute(_POSTGRES_COUNT, {"kind": kind, "word": word, "most": _COUNTED}).scalar_one())
        for word in found
    }
    return [Term(word, counted[word]) for word in found]


def find(
    connection: Connection, kind: Kind, owner: Owner, wanted: Sequence[Term], limit: int
) -> list[tuple[int, float]]:
    """Rows that hold at least one of the words, best first, with a score above 0 that has no upper bound."""
    if not wanted or limit <= 0:
        return []
    if not _on_sqlite(connection):
        return _find_postgres(connection, kind, owner, wanted, limit)
    number = _number(connection, owner)
    if number is None:
        return []
    match = " OR ".join(f'"{term.word}"' for term in wanted)
    rows = connection.exec_driver_sql(
        f"SELECT rowid, rank FROM {kind}_text WHERE {kind}_text MATCH ? AND rowid BETWEEN ? AND ?"  # noqa: S608
        f" AND rank MATCH 'bm25(1.0, {AROUND_WEIGHT})' ORDER BY rank LIMIT ?",
        (match, number << _ROWS, number << _ROWS | _MASK, limit),
    )
    return [(int(row[0]) & _MASK, -float(row[1])) for row in rows]


def substring(connection: Connection, kind: Kind, owner: Owner, query: str, limit: int) -> list[int]:
    """Rows whose text holds the query as it stands, newest first; the last resort of a search."""
    pattern = like_pattern(query)
    if pattern is None or limit <= 0:
        return []
    if not _on_sqlite(connection):
        values = {**owner.columns(), "kind": kind, "pattern": pattern, "limit": limit}
        return [int(row[0]) for row in connection.execute(_POSTGRES_SUBSTRING, values)]
    number = _number(connection, owner)
    if number is None:
        return []
    rows = connection.exec_driver_sql(
        f"SELECT rowid FROM {kind}_text WHERE rowid BETWEEN ? AND ? AND text LIKE ? ESCAPE '\\'"  # noqa: S608
        " ORDER BY rowid DESC LIMIT ?",
        (number << _ROWS, number << _ROWS | _MASK, pattern, limit),
    )
    return [int(row[0]) & _MASK for row in rows]


def _find_postgres(
    connection: Connection, kind: Kind, owner: Owner, wanted: Sequence[Term], limit: int
) -> list[tuple[int, float]]:
    total = int(connection.execute(_POSTGRES_TOTAL, {"kind": kind, **owner.columns()}).scalar_one())
    values: dict[str, object] = {**owner.columns(), "kind": kind, "limit": limit}
    ranks: list[str] = []
    for n, term in enumerate(wanted):
        # The engine's own rank does not know how rare a word is, which is most of what BM25 is worth.
        values |= {f"word{n}": term.word, f"weight{n}": _rarity(total, term.frequency)}
        ranks.append(f"CAST(:weight{n} AS real) * ts_rank(found, {_query(n)}, 1)")
    any_word = " || ".join(_query(n) for n in range(len(wanted)))
    statement = (
        f"SELECT row_id, {' + '.join(ranks)} AS score FROM text_index WHERE user_id = :user_id"  # noqa: S608
        f" AND agent_id = :agent_id AND kind = :kind AND found @@ ({any_word}) ORDER BY score DESC, row_id DESC LIMIT :limit"
    )
    return [(int(row[0]), float(row[1])) for row in connection.execute(text(statement), values)]


def _rarity(total: int, frequency: int) -> float:
    return math.log(1 + (max(total - frequency, 0) + 0.5) / (frequency + 0.5))


def _query(n: int) -> str:
    return f"(plainto_tsquery('english', :word{n}) || plainto_tsquery('simple', :word{n}))"


def _number(connection: Connection, owner: Owner, *, make: bool = False) -> int | None:
    found = connection.exec_driver_sql(
        "SELECT id FROM text_owners WHERE user_id = ? AND agent_id = ?", (owner.user_id, owner.agent_id)
    ).scalar()
    if found is None and make:
        found = connection.exec_driver_sql(
            "INSERT INTO text_owners (user_id, agent_id) VALUES (?, ?) RETURNING id", (owner.user_id, owner.agent_id)
        ).scalar_one()
    return None if found is None else int(found)


def _on_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"
