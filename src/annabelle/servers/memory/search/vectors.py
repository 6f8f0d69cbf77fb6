"""In-memory vectors, one matrix per owner and kind, so that a search can only touch its owner's (I-30)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from annabelle.embeddings.matrix import VectorMatrix
from annabelle.store.memory.facts import FactVector
from annabelle.store.memory.owner import Owner, SearchKind
from annabelle.store.memory.vectors import MOST_PIECES, VectorBlock

Vectors = NDArray[np.float32]

_PIECE_BITS = 4
assert MOST_PIECES < 1 << _PIECE_BITS


def to_array(vector: FactVector) -> Vectors:
    return np.frombuffer(vector.data, "<f4")


class OwnerVectors:
    """One matrix for each kind of row of each owner. A row has a vector for each of its passages."""

    def __init__(self) -> None:
        self._by_owner: dict[tuple[SearchKind, Owner], VectorMatrix] = {}

    def put(self, kind: SearchKind, owner: Owner, row_id: int, vectors: Vectors) -> None:
        """Take the vectors of a row, instead of those it had."""
        rows = np.atleast_2d(vectors)[: 1 << _PIECE_BITS]
        matrix = self._matrix(kind, owner, rows.shape[1])
        matrix.remove_rows(_keys(row_id, kind)[len(rows) :])
        for piece, vector in enumerate(rows):
            matrix.set_row(row_id << _PIECE_BITS | piece, vector)

    def put_block(self, block: VectorBlock) -> None:
        """Take many at once, as they are read at the start."""
        ids = np.asarray(block.row_ids, np.int64)
        starts = np.flatnonzero(np.diff(ids, prepend=-1))
        pieces = np.arange(len(ids)) - np.repeat(starts, np.diff(starts, append=len(ids)))
        vectors = np.frombuffer(block.data, "<f4").reshape(len(ids), block.dimension)
        self._matrix(block.kind, block.owner, block.dimension).set_rows(ids << _PIECE_BITS | pieces, vectors)

    def drop(self, kind: SearchKind, owner: Owner, row_ids: Iterable[int]) -> None:
        matrix = self._by_owner.get((kind, owner))
        if matrix is not None:
            matrix.remove_rows(key for row_id in row_ids for key in _keys(row_id, kind))

    def nearest(
        self, kind: SearchKind, owner: Owner, vector: Vectors, limit: int, among: Iterable[int] | None = None
    ) -> dict[int, float]:
        """The rows closest in meaning, with the cosine of their closest passage."""
        matrix = self._matching_matrix(kind, owner, vector)
        if matrix is None:
            return {}
        keys = None if among is None else [key for row_id in among for key in _keys(row_id, kind)]
        best: dict[int, float] = {}
        for key, cosine in matrix.nearest(vector, limit, keys):
            best.setdefault(key >> _PIECE_BITS, cosine)
        return best

    def alike(self, kind: SearchKind, owner: Owner, vector: Vectors, least: float, limit: int) -> dict[int, float]:
        """The rows that mean nearly the same, with their cosines."""
        matrix = self._matching_matrix(kind, owner, vector)
        best: dict[int, float] = {}
        for key, cosine in [] if matrix is None else matrix.nearly_equal(vector, least, limit):
            best.setdefault(key >> _PIECE_BITS, cosine)
        return best

    def scores(self, kind: SearchKind, owner: Owner, vector: Vectors, row_ids: list[int]) -> dict[int, float]:
        """How close each of these rows is; 0 for one without a vector."""
        matrix = self._matching_matrix(kind, owner, vector)
        if matrix is None or not row_ids:
            return dict.fromkeys(row_ids, 0.0)
        width = len(_keys(0, kind))
        keys = (np.asarray(row_ids, np.int64)[:, None] << _PIECE_BITS) + np.arange(width)
        cosines = matrix.scores(vector, keys.ravel()).reshape(len(row_ids), width).max(axis=1)
        return dict(zip(row_ids, cosines.tolist(), strict=True))

    def count(self, kind: SearchKind, owner: Owner) -> int:
        matrix = self._by_owner.get((kind, owner))
        return 0 if matrix is None else len(matrix)

    def _matching_matrix(self, kind: SearchKind, owner: Owner, vector: Vectors) -> VectorMatrix | None:
        matrix = self._by_owner.get((kind, owner))
        return matrix if matrix is not None and matrix.dimension == len(vector) and len(matrix) else None

    def _matrix(self, kind: SearchKind, owner: Owner, dimension: int) -> VectorMatrix:
        matrix = self._by_owner.get((kind, owner))
        if matrix is None or matrix.dimension != dimension:
            matrix = self._by_owner[kind, owner] = VectorMatrix(dimension)
        return matrix


def _keys(row_id: int, kind: SearchKind) -> range:
    first = row_id << _PIECE_BITS
    return range(first, first + (1 if kind == "fact" else MOST_PIECES))
