"""Gives every row a vector of the model in use: after the model was changed, or was not to be had for a while.

Each batch is stored on its own, so that a stop at any moment loses nothing and the next start goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from annabelle.embeddings import Embedder
from annabelle.servers.memory.whole import Whole
from annabelle.store.database import Database
from annabelle.store.memory import conversations, facts, vectors
from annabelle.store.memory.owner import Kind, Owner
from annabelle.store.memory.passages import passages

Vectors = NDArray[np.float32]
NewVectors = Callable[[Kind, Owner, int, Vectors], None]

KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Row:
    """Something that is found by meaning, and the text that means it."""

    kind: Kind
    owner: Owner
    row_id: int
    text: str


class Reembedding:
    """One batch at a time, whoever asks: the background and a person's request do not do the same work twice."""

    def __init__(self, database: Database, embedder: Embedder, on_vectors: NewVectors, whole: Whole) -> None:
        """`on_vectors` is told those of each row once they are stored, so that search knows them too."""
        self._database, self._embedder, self._on_vectors, self._whole = database, embedder, on_vectors, whole
        self._turn = asyncio.Lock()

    async def batch(self, size: int, owner: Owner | None = None) -> int:
        """How many rows got a vector; 0 when none was missing. Raises EmbeddingsUnavailable."""
        async with self._turn:
            model = str(self._embedder.model)
            rows = await self._database.read(lambda c: _missing(c, model, size, owner))
            if not rows:
                return 0
            pieces = [passages(row.kind, row.text) for row in rows]
            made = await self._embedder.embed([text for texts in pieces for text in texts])
            model, dimension = str(self._embedder.model), made.shape[1]
            parts = np.split(made, np.cumsum([len(texts) for texts in pieces])[:-1])
            by_row = dict(zip(rows, parts, strict=True))
            await self._whole.do(self._store(model, dimension, by_row))
            return len(rows)

    async def _store(self, model: str, dimension: int, made: Mapping[Row, Vectors]) -> None:
        for row in await self._database.write(lambda c: _keep(c, model, dimension, made)):
            self._on_vectors(row.kind, row.owner, row.row_id, made[row])

    async def remaining(self, owner: Owner | None = None) -> int:
        model = str(self._embedder.model)
        return await self._database.read(lambda c: sum(vectors.count_missing(c, model, kind, owner) for kind in KINDS))

    async def present(self, owner: Owner | None = None) -> int:
        model = str(self._embedder.model)
        return await self._database.read(lambda c: vectors.count(c, model, owner=owner))


def _missing(connection: Connection, model: str, size: int, owner: Owner | None) -> list[Row]:
    rows: list[Row] = []
    for kind in KINDS:
        if len(rows) < size:
            found = vectors.missing(connection, model, kind, limit=size - len(rows), owner=owner)
            rows += _texts(connection, kind, found)
    return rows


def _texts(connection: Connection, kind: Kind, found: Iterable[tuple[int, Owner]]) -> list[Row]:
    """The rows as they are now; one that is gone, or was retired, is left out."""
    by_owner: dict[Owner, list[int]] = {}
    for row_id, owner in found:
        by_owner.setdefault(owner, []).append(row_id)
    return [
        Row(kind, owner, row_id, text)
        for owner, ids in by_owner.items()
        for row_id, text in _text_of(connection, kind, owner, ids).items()
    ]


def _text_of(connection: Connection, kind: Kind, owner: Owner, ids: list[int]) -> dict[int, str]:
    if kind == "conversation":
        return {row_id: turn.text() for row_id, turn in conversations.get(connection, owner, ids).items()}
    return {row_id: fact for row_id, (fact, _) in facts.wordings(connection, owner, ids).items()}


def _keep(connection: Connection, model: str, dimension: int, made: Mapping[Row, Vectors]) -> list[Row]:
    """Store the vectors of those rows that still say what they said when the vectors were asked for."""
    kept: list[Row] = []
    for kind in KINDS:
        asked = [(row.row_id, row.owner) for row in made if row.kind == kind]
        same = [row for row in _texts(connection, kind, asked) if row in made]
        blobs = [(row.owner, row.row_id, made[row].astype("<f4").tobytes()) for row in same]
        vectors.put_many(connection, kind, model, dimension, blobs)
        kept += same
    return kept
