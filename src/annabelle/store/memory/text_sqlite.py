"""Full text on SQLite: FTS5 with stemming, one index per kind of row.

The owner is the upper half of the index's row id, so that a search reads only its owner's rows (I-30). Words are
erased from the index when their row is deleted, not merely marked (TRU-09).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar, cast

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from annabelle.store.engine import driver
from annabelle.store.memory.owner import Owner, SearchKind
from annabelle.store.memory.query_parts import CONTEXT_WEIGHT, SearchTerm

K = TypeVar("K")
V = TypeVar("V")

_TOKENIZER = "porter unicode61 remove_diacritics 2"
_KINDS: tuple[SearchKind, ...] = ("fact", "conversation")

TABLES = [
    "CREATE TABLE text_owners (id INTEGER PRIMARY KEY, user_id TEXT NOT NULL, agent_id TEXT NOT NULL,"
    " UNIQUE (user_id, agent_id))",
    *(
        statement
        for kind in _KINDS
        for statement in (
            f"CREATE VIRTUAL TABLE {kind}_text USING fts5(text, around, tokenize = '{_TOKENIZER}')",
            f"INSERT INTO {kind}_text ({kind}_text, rank) VALUES ('secure-delete', 1)",  # noqa: S608
            f"CREATE VIRTUAL TABLE {kind}_terms USING fts5vocab('{kind}_text', 'row')",
        )
    ),
]

_ROW_BITS = 40
_ROW_MASK = (1 << _ROW_BITS) - 1
_FIRST = f"((SELECT id FROM text_owners WHERE user_id = ? AND agent_id = ?) << {_ROW_BITS})"  # noqa: S608
_STRETCH = f"rowid BETWEEN {_FIRST} AND ({_FIRST} | {_ROW_MASK})"
_WHOLE = (
    "SELECT id, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'facts'), 0)"
    " FROM text_owners WHERE user_id = ? AND agent_id = ?"
)
_COMMON = 256  # counting a rare word is cheaper than caching its count
_REMEMBERED = 5_000


def put(connection: Connection, kind: SearchKind, owner: Owner, row_id: int, text: str, around: str) -> None:
    number = _number(connection, owner)
    if number is None:
        added = "INSERT INTO text_owners (user_id, agent_id) VALUES (?, ?) RETURNING id"
        number = int(_rows(connection, added, (owner.user_id, owner.agent_id))[0][0])
    statement = f"INSERT OR REPLACE INTO {kind}_text (rowid, text, around) VALUES (?, ?, ?)"  # noqa: S608
    _rows(connection, statement, (number << _ROW_BITS | row_id, text, around))


def drop(connection: Connection, kind: SearchKind, row_ids: Sequence[int]) -> None:
    # Row ids are unique within a kind across owners, and owners are few.
    numbers = [int(row[0]) for row in _rows(connection, "SELECT id FROM text_owners")]
    for key in (number << _ROW_BITS | row_id for number in numbers for row_id in row_ids):
        _rows(connection, f"DELETE FROM {kind}_text WHERE rowid = ?", (key,))  # noqa: S608


def terms(connection: Connection, kind: SearchKind, words: Sequence[str]) -> list[SearchTerm]:
    if not words:
        return []
    stems = _stems(connection, words)
    common = cast("dict[tuple[str, str], int]", connection.info.setdefault("annabelle_common_terms", {}))
    wanted = dict.fromkeys(stems[word] for word in words if word in stems)
    counted = {stem: common[kind, stem] for stem in wanted if (kind, stem) in common}
    if unknown := [stem for stem in wanted if stem not in counted]:
        places = ", ".join("?" * len(unknown))
        query = f"SELECT term, doc FROM {kind}_terms WHERE term IN ({places})"  # noqa: S608
        for term, frequency in _rows(connection, query, tuple(unknown)):
            counted[term] = frequency
            if frequency >= _COMMON:
                _remember(common, (kind, term), frequency)
    return [SearchTerm(word, counted.get(stems[word], 0)) for word in words if word in stems]


def find(
    connection: Connection, kind: SearchKind, owner: Owner, wanted: Sequence[SearchTerm], limit: int
) -> list[tuple[int, float]]:
    if kind == "fact":
        return _find_short(connection, owner, wanted, limit)
    match = " OR ".join(f'"{term.word}"' for term in wanted)
    return _rows(
        connection,
        f"SELECT rowid & {_ROW_MASK}, -rank FROM {kind}_text WHERE {kind}_text MATCH ? AND {_STRETCH}"  # noqa: S608
        f" AND rank MATCH 'bm25(1.0, {CONTEXT_WEIGHT})' ORDER BY rank LIMIT ?",
        (match, *_whose(owner), limit),
    )


def _find_short(
    connection: Connection, owner: Owner, wanted: Sequence[SearchTerm], limit: int
) -> list[tuple[int, float]]:
    """Like `find`, by rarity alone: a word occurs once in a fact, and BM25 would read the length of every match."""
    whole = _rows(connection, _WHOLE, (owner.user_id, owner.agent_id))
    if not whole:
        return []
    first, total = int(whole[0][0]) << _ROW_BITS, int(whole[0][1])
    values: dict[str, object] = {"first": first, "last": first | _ROW_MASK, "limit": limit}
    for n, term in enumerate(wanted):
        rarity = math.log(1 + max(total - term.frequency, 0.5) / (term.frequency + 0.5))
        values |= {f"word{n}": f'"{term.word}"', f"rarity{n}": rarity}
    arms = " UNION ALL ".join(
        f"SELECT rowid, :rarity{n} AS rarity FROM fact_text"  # noqa: S608
        f" WHERE fact_text MATCH :word{n} AND rowid BETWEEN :first AND :last"
        for n in range(len(wanted))
    )
    return _rows(
        connection,
        f"SELECT rowid & {_ROW_MASK}, sum(rarity) FROM ({arms})"  # noqa: S608
        " GROUP BY 1 ORDER BY 2 DESC, 1 DESC LIMIT :limit",
        values,
    )


def substring(connection: Connection, kind: SearchKind, owner: Owner, wanted: str, limit: int) -> list[int]:
    rows = _rows(
        connection,
        f"SELECT rowid & {_ROW_MASK} FROM {kind}_text WHERE {_STRETCH} AND instr(text, ?) > 0"  # noqa: S608
        " ORDER BY rowid DESC LIMIT ?",
        (*_whose(owner), wanted, limit),
    )
    return [int(row[0]) for row in rows]


def _rows(connection: Connection, statement: str, values: tuple[object, ...] | dict[str, object] = ()) -> list[Any]:
    """Runs a statement without SQLAlchemy, whose preparation takes longer than running it."""
    direct = cast("driver.Connection", connection.connection.driver_connection)
    try:
        return direct.execute(statement, values).fetchall()
    except driver.Error as error:
        raise DBAPIError(statement, None, error, hide_parameters=True) from error


def _whose(owner: Owner) -> tuple[str, str, str, str]:
    return owner.user_id, owner.agent_id, owner.user_id, owner.agent_id


def _number(connection: Connection, owner: Owner) -> int | None:
    statement = "SELECT id FROM text_owners WHERE user_id = ? AND agent_id = ?"
    found = _rows(connection, statement, (owner.user_id, owner.agent_id))
    return int(found[0][0]) if found else None


def _stems(connection: Connection, words: Sequence[str]) -> dict[str, str]:
    """Returns the stem of each word. SQLite reveals stems only by indexing, done here in an in-memory database."""
    scratch = cast("driver.Connection | None", connection.info.get("annabelle_scratch"))
    if scratch is None:
        # Kept with the pooled connection, which only one thread uses at a time.
        scratch = driver.connect(":memory:", check_same_thread=False, isolation_level=None)
        scratch.execute(f"CREATE VIRTUAL TABLE words USING fts5(word, content = '', tokenize = '{_TOKENIZER}')")
        scratch.execute("CREATE VIRTUAL TABLE stems USING fts5vocab('words', 'instance')")
        connection.info["annabelle_scratch"] = scratch
    known = cast("dict[str, str]", connection.info.setdefault("annabelle_stems", {}))
    if unknown := [word for word in words if word not in known]:
        scratch.execute("BEGIN")
        scratch.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(unknown))
        for term, doc in scratch.execute("SELECT term, doc FROM stems").fetchall():
            _remember(known, unknown[int(doc)], str(term))
        scratch.execute("ROLLBACK")
    return {word: known[word] for word in words if word in known}


def _remember(known: dict[K, V], key: K, value: V) -> None:
    if len(known) >= _REMEMBERED:
        known.clear()
    known[key] = value
