"""Full text of what is remembered: which rows hold the words of a query, best first, on both engines.

A row is indexed by its `text` and by what is `around` it: what belongs to it without being its words, as who said it
and when. Words of a query are always quoted and bound, so nothing a person types is syntax.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from sqlalchemy import Connection

from annabelle.core.text import fold_for_search, split_search_words
from annabelle.store.memory import text_postgres, text_sqlite
from annabelle.store.memory.owner import Owner, SearchKind
from annabelle.store.memory.query_parts import SearchTerm

__all__ = [
    "INDEXED_CHARACTERS",
    "SearchTerm",
    "count_terms",
    "create_index",
    "find_rows",
    "find_substring",
    "index_row",
    "index_rows",
    "remove_rows",
]

INDEXED_CHARACTERS = 20_000
"""A longer text is found by its beginning only."""

MAX_WORDS = 64
"""Of a longer query, the first are looked for."""


def create_index(connection: Connection) -> None:
    """Make the index's own tables for the engine at hand; part of the first revision of the memory."""
    for statement in _text_engine(connection).TABLES:
        connection.exec_driver_sql(statement)


def index_row(connection: Connection, kind: SearchKind, owner: Owner, row_id: int, text: str, around: str = "") -> None:
    """Index a row, or index it again."""
    index_rows(connection, kind, owner, [(row_id, text, around)])


def index_rows(connection: Connection, kind: SearchKind, owner: Owner, rows: Iterable[tuple[int, str, str]]) -> None:
    """Index rows of one owner, each with its text and what is around it, or index them again."""
    folded = [
        (row_id, fold_for_search(text[:INDEXED_CHARACTERS]), fold_for_search(around[:INDEXED_CHARACTERS]))
        for row_id, text, around in rows
    ]
    if folded:
        _text_engine(connection).put_many(connection, kind, owner, folded)


def remove_rows(connection: Connection, kind: SearchKind, row_ids: Iterable[int]) -> None:
    """Take rows out of the index; those it does not have are passed over."""
    if ids := list(row_ids):
        _text_engine(connection).drop(connection, kind, ids)


def count_terms(connection: Connection, kind: SearchKind, query: str | Iterable[str]) -> list[SearchTerm]:
    """The words of a query, each once, in their order, with how common they are."""
    found = (
        split_search_words(query)
        if isinstance(query, str)
        else [word for part in query for word in split_search_words(part)]
    )
    return _text_engine(connection).terms(connection, kind, list(dict.fromkeys(found))[:MAX_WORDS])


def find_rows(
    connection: Connection, kind: SearchKind, owner: Owner, wanted: Sequence[SearchTerm], limit: int
) -> list[tuple[int, float]]:
    """Rows that hold at least one of the words, best first, with a score above 0 that has no upper bound."""
    if not wanted or limit <= 0:
        return []
    return _text_engine(connection).find(connection, kind, owner, wanted, limit)


def find_substring(connection: Connection, kind: SearchKind, owner: Owner, query: str, limit: int) -> list[int]:
    """Rows whose text holds the query as it stands, newest first: the last resort of a search."""
    wanted = fold_for_search(query[:INDEXED_CHARACTERS]).strip()
    if not wanted or limit <= 0:
        return []
    return _text_engine(connection).substring(connection, kind, owner, wanted, limit)


class _TextEngine(Protocol):
    @property
    def TABLES(self) -> Sequence[str]: ...

    @staticmethod
    def put_many(
        connection: Connection, kind: SearchKind, owner: Owner, rows: Sequence[tuple[int, str, str]]
    ) -> None: ...
    @staticmethod
    def drop(connection: Connection, kind: SearchKind, row_ids: Sequence[int]) -> None: ...
    @staticmethod
    def terms(connection: Connection, kind: SearchKind, words: Sequence[str]) -> list[SearchTerm]: ...
    @staticmethod
    def find(
        connection: Connection, kind: SearchKind, owner: Owner, wanted: Sequence[SearchTerm], limit: int
    ) -> list[tuple[int, float]]: ...
    @staticmethod
    def substring(connection: Connection, kind: SearchKind, owner: Owner, wanted: str, limit: int) -> list[int]: ...


def _text_engine(connection: Connection) -> _TextEngine:
    return text_sqlite if connection.dialect.name == "sqlite" else text_postgres
