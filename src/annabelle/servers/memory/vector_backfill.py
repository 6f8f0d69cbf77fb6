"""Embeds rows that lack a vector of the current model, and runs writes to completion even if their caller is
cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from annabelle.embeddings import Embedder
from annabelle.store.database import Database
from annabelle.store.memory import conversations, facts, vectors
from annabelle.store.memory.owner import Owner, SearchKind
from annabelle.store.memory.vectors import split_passages

T = TypeVar("T")

CLOSE_SECONDS = 5.0


class Uncancellable:
    """A caller may give up at any moment. A transaction that runs then is committed all the same, so what has to
    follow it must follow."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[object]] = set()

    async def run(self, work: Coroutine[object, object, T]) -> T:
        """The result of the work. It goes on when nobody waits for that any more."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._on_done)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Wait for what is under way, for a bounded time."""
        if self._running:
            await asyncio.wait(self._running, timeout=CLOSE_SECONDS)

    def _on_done(self, task: asyncio.Task[object]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # whoever asked was told, if they are still there


Vectors = NDArray[np.float32]
NewVectors = Callable[[SearchKind, Owner, int, Vectors], None]

KINDS: tuple[SearchKind, ...] = get_args(SearchKind)


@dataclass(frozen=True, slots=True)
class EmbeddableRow:
    """Something that is found by meaning, and the text that means it."""

    kind: SearchKind
    owner: Owner
    row_id: int
    text: str


class VectorBackfill:
    """One batch at a time, whoever asks: the background and a person's request do not do the same work twice."""

    def __init__(self, database: Database, embedder: Embedder, on_vectors: NewVectors, whole: Uncancellable) -> None:
        """`on_vectors` is told those of each row once they are stored, so that search knows them too."""
        self._database, self._embedder, self._on_vectors, self._uncancellable = database, embedder, on_vectors, whole
        self._lock = asyncio.Lock()

    async def embed_batch(self, size: int, owner: Owner | None = None) -> int:
        """How many rows got a vector; 0 when none was missing. Raises EmbeddingsUnavailable."""
        async with self._lock:
            model = str(self._embedder.model)
            rows = await self._database.read(lambda c: _find_missing(c, model, size, owner))
            if not rows:
                return 0
            pieces = [split_passages(row.kind, row.text) for row in rows]
            made = await self._embedder.embed([text for texts in pieces for text in texts])
            model, dimension = str(self._embedder.model), made.shape[1]
            parts = np.split(made, np.cumsum([len(texts) for texts in pieces])[:-1])
            by_row = dict(zip(rows, parts, strict=True))
            await self._uncancellable.run(self._store(model, dimension, by_row))
            return len(rows)

    async def _store(self, model: str, dimension: int, made: Mapping[EmbeddableRow, Vectors]) -> None:
        for row in await self._database.write(lambda c: _store_vectors(c, model, dimension, made)):
            self._on_vectors(row.kind, row.owner, row.row_id, made[row])

    async def count_missing(self, owner: Owner | None = None) -> int:
        model = str(self._embedder.model)
        return await self._database.read(lambda c: sum(vectors.count_missing(c, model, kind, owner) for kind in KINDS))

    async def count_present(self, owner: Owner | None = None) -> int:
        model = str(self._embedder.model)
        return await self._database.read(lambda c: vectors.count_vectors(c, model, owner=owner))


def _find_missing(connection: Connection, model: str, size: int, owner: Owner | None) -> list[EmbeddableRow]:
    rows: list[EmbeddableRow] = []
    for kind in KINDS:
        if len(rows) < size:
            found = vectors.list_missing(connection, model, kind, limit=size - len(rows), owner=owner)
            rows += _load_texts(connection, kind, found)
    return rows


def _load_texts(connection: Connection, kind: SearchKind, found: Iterable[tuple[int, Owner]]) -> list[EmbeddableRow]:
    """The rows as they are now; one that is gone, or was retired, is left out."""
    by_owner: dict[Owner, list[int]] = {}
    for row_id, owner in found:
        by_owner.setdefault(owner, []).append(row_id)
    return [
        EmbeddableRow(kind, owner, row_id, text)
        for owner, ids in by_owner.items()
        for row_id, text in _load_texts_of_owner(connection, kind, owner, ids).items()
    ]


def _load_texts_of_owner(connection: Connection, kind: SearchKind, owner: Owner, ids: list[int]) -> dict[int, str]:
    if kind == "conversation":
        return {row_id: turn.search_text() for row_id, turn in conversations.get_turns(connection, owner, ids).items()}
    return {row_id: fact for row_id, (fact, _) in facts.get_wordings(connection, owner, ids).items()}


def _store_vectors(
    connection: Connection, model: str, dimension: int, made: Mapping[EmbeddableRow, Vectors]
) -> list[EmbeddableRow]:
    """Store the vectors of those rows that still say what they said when the vectors were asked for."""
    kept: list[EmbeddableRow] = []
    for kind in KINDS:
        asked = [(row.row_id, row.owner) for row in made if row.kind == kind]
        same = [row for row in _load_texts(connection, kind, asked) if row in made]
        blobs = [(row.owner, row.row_id, made[row].astype("<f4").tobytes()) for row in same]
        vectors.store_vectors(connection, kind, model, dimension, blobs)
        kept += same
    return kept
