"""Full text on SQLite: FTS5 with stemming, one index per kind of row.

The owner is the upper half of the index's row number, so a search reads its owner's stretch of the index only (I-30).
Words are erased from the index when their row goes, not merely marked (TRU-09).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sqlalchemy import Connection

from annabelle.store.driver import driver
from annabelle.store.memory.owner import Kind, Owner
from annabelle.store.memory.term import AROUND_WEIGHT, Term

_TOKENIZER = "porter unicode61 remove_diacritics 2"
_KINDS: tuple[Kind, ...] = ("fact", "conversation")

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
_COMMON = 256  # counting a rare word costs less than remembering its count
_REMEMBERED = 5_000


def put(connection: Connection, kind: Kind, owner: Owner, row_id: int, text: str, around: str) -> None:
    number = _number(connection, owner)
    if number is None:
        number = int(
            connection.exec_driver_sql(
                "INSERT INTO text_owners (user_id, agent_id) VALUES (?, ?) RETURNING id",
                (owner.user_id, owner.agent_id),
            ).scalar_one()
        )
    connection.exec_driver_sql(
        f"INSERT OR REPLACE INTO {kind}_text (rowid, text, around) VALUES (?, ?, ?)",  # noqa: S608
        (number << _ROW_BITS | row_id, text, around),
    )


def drop(connection: Connection, kind: Kind, row_ids: Sequence[int]) -> None:
    # Row ids are unique within a kind, whoever owns them, and owners are few.
    numbers = [int(row[0]) for row in connection.exec_driver_sql("SELECT id FROM text_owners")]
    for key in (number << _ROW_BITS | row_id for number in numbers for row_id in row_ids):
        connection.exec_driver_sql(f"DELETE FROM {kind}_text WHERE rowid = ?", (key,))  # noqa: S608


def terms(connection: Connection, kind: Kind, words: Sequence[str]) -> list[Term]:
    if not words:
        return []
    stems = _stems(connection, words)
    common = cast("dict[tuple[str, str], int]", connection.info.setdefault("annabelle_common_terms", {}))
    counted: dict[str, int] = {}
    for stem in dict.fromkeys(stems.values()):
        frequency = common.get((kind, stem))
        if frequency is None:
            row = connection.exec_driver_sql(f"SELECT doc FROM {kind}_terms WHERE term = ?", (stem,)).first()  # noqa: S608
            frequency = int(row[0]) if row else 0
            if frequency >= _COMMON:
                if len(common) >= _REMEMBERED:
                    common.clear()
                common[kind, stem] = frequency
        counted[stem] = frequency
    return [Term(word, counted[stems[word]]) for word in words if word in stems]


def find(
    connection: Connection, kind: Kind, owner: Owner, wanted: Sequence[Term], limit: int
) -> list[tuple[int, float]]:
    number = _number(connection, owner)
    if number is None:
        return []
    match = " OR ".join(f'"{term.word}"' for term in wanted)
    rows = connection.exec_driver_sql(
        f"SELECT rowid, rank FROM {kind}_text WHERE {kind}_text MATCH ? AND rowid BETWEEN ? AND ?"  # noqa: S608
        f" AND rank MATCH 'bm25(1.0, {AROUND_WEIGHT})' ORDER BY rank LIMIT ?",
        (match, *_stretch(number), limit),
    )
    return [(int(row[0]) & _ROW_MASK, -float(row[1])) for row in rows]


def substring(connection: Connection, kind: Kind, owner: Owner, pattern: str, limit: int) -> list[int]:
    number = _number(connection, owner)
    if number is None:
        return []
    rows = connection.exec_driver_sql(
        f"SELECT rowid FROM {kind}_text WHERE rowid BETWEEN ? AND ? AND text LIKE ? ESCAPE '\\'"  # noqa: S608
        " ORDER BY rowid DESC LIMIT ?",
        (*_stretch(number), pattern, limit),
    )
    return [int(row[0]) & _ROW_MASK for row in rows]


def _number(connection: Connection, owner: Owner) -> int | None:
    statement = "SELECT id FROM text_owners WHERE user_id = ? AND agent_id = ?"
    found = connection.exec_driver_sql(statement, (owner.user_id, owner.agent_id)).scalar()
    return None if found is None else int(found)


def _stretch(number: int) -> tuple[int, int]:
    return number << _ROW_BITS, number << _ROW_BITS | _ROW_MASK


def _stems(connection: Connection, words: Sequence[str]) -> dict[str, str]:
    """What the index calls each word. SQLite tells only by indexing it, which is done in a database in memory."""
    scratch = cast("driver.Connection | None", connection.info.get("annabelle_scratch"))
    if scratch is None:
        # Kept with the pooled connection, which one thread uses at a time.
        scratch = driver.connect(":memory:", check_same_thread=False, isolation_level=None)
        scratch.execute(f"CREATE VIRTUAL TABLE words USING fts5(word, content = '', tokenize = '{_TOKENIZER}')")
        scratch.execute("CREATE VIRTUAL TABLE stems USING fts5vocab('words', 'instance')")
        connection.info["annabelle_scratch"] = scratch
    scratch.execute("BEGIN")
    scratch.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(words))
    found = {words[int(doc)]: str(term) for term, doc in scratch.execute("SELECT term, doc FROM stems")}
    scratch.execute("ROLLBACK")
    return found
