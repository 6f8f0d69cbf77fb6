"""Full-text search of memories on both engines.

A row is indexed by its `text` and by what is `around` it, such as who said it and when. Words of a query are quoted and
bound, so that user input is never syntax.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from sqlalchemy import Connection

from annabelle.core.text import fold_for_search, split_search_words
from annabelle.store.memory import text_postgres, text_sqlite
from annabelle.store.memory.owner import Owner, SearchKind
from annabelle.store.memory.query_parts import SearchTerm

INDEXED_CHARACTERS = 20_000
"""Only this much of a longer text is indexed."""

MAX_WORDS = 64
"""Only the first words of a longer query are used."""


def create_index(connection: Connection) -> None:
    """Creates the index tables for this engine; part of the memory's first revision."""
    for statement in _text_engine(connection).TABLES:
        connection.exec_driver_sql(statement)


def index_row(connection: Connection, kind: SearchKind, owner: Owner, row_id: int, text: str, around: str = "") -> None:
    """Indexes a row, replacing its earlier entry."""
    said, context = (fold_for_search(part[:INDEXED_CHARACTERS]) for part in (text, around))
    _text_engine(connection).put(connection, kind, owner, row_id, said, context)


def remove_rows(connection: Connection, kind: SearchKind, row_ids: Iterable[int]) -> None:
    """Removes rows from the index; ignores those it does not have."""
    if ids := list(row_ids):
        _text_engine(connection).drop(connection, kind, ids)


def count_terms(connection: Connection, kind: SearchKind, query: str | Iterable[str]) -> list[SearchTerm]:
    """Returns the distinct words of a query in order, with their frequency."""
    found = (
        split_search_words(query)
        if isinstance(query, str)
        else [word for part in query for word in split_search_words(part)]
    )
    return _text_engine(connection).terms(connection, kind, list(dict.fromkeys(found))[:MAX_WORDS])


def find_rows(
    connection: Connection, kind: SearchKind, owner: Owner, wanted: Sequence[SearchTerm], limit: int
) -> list[tuple[int, float]]:
    """Finds rows with at least one of the words, best first; scores are positive and unbounded."""
    if not wanted or limit <= 0:
        return []
    return _text_engine(connection).find(connection, kind, owner, wanted, limit)


def find_substring(connection: Connection, kind: SearchKind, owner: Owner, query: str, limit: int) -> list[int]:
    """Finds rows whose text contains the whole query, newest first: the last resort of a search."""
    wanted = fold_for_search(query[:INDEXED_CHARACTERS]).strip()
    if not wanted or limit <= 0:
        return []
    return _text_engine(connection).substring(connection, kind, owner, wanted, limit)


class _TextEngine(Protocol):
    @property
    def TABLES(self) -> Sequence[str]: ...

    @staticmethod
    def put(connection: Connection, kind: SearchKind, owner: Owner, row_id: int, text: str, around: str) -> None: ...
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
