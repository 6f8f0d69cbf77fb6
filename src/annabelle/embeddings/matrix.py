"""Searches vectors in memory: exact cosine, updated in place."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from annabelle.embeddings.blocks import Blocks
from annabelle.embeddings.key_index import KeyIndex
from annabelle.embeddings.signs import Signs

PREFILTER_ROWS = 50_000
# Measured on 77,000 sentences: with these, 10 of the best 10 and 99 of the best 100 are among those compared exactly.
_RESCORED_SHARE = 0.04
_RESCORED_PER_HIT = 80
# Nearly equal vectors are missed when more signs differ than their angle says, by so many standard deviations.
_BY_CHANCE = 4.5

Vector = NDArray[np.float32]
Among = Collection[int] | NDArray[np.int64]


class Matrix:
    """Rows of unit length by whole-number keys, and which of them are nearest to a vector.

    Above `prefilter_rows` the signs of the numbers, a bit each, choose the best few percent, and only those are
    compared exactly. One thread at a time.
    """

    def __init__(self, dimension: int, capacity: int = 0, *, prefilter_rows: int = PREFILTER_ROWS) -> None:
        self.dimension = dimension
        self._prefilter_rows = prefilter_rows
        self._blocks, self._signs = Blocks(dimension), Signs(dimension)
        self._index = KeyIndex()
        self._keys = np.empty(max(capacity, 64), np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: int) -> bool:
        return self._index.get(key) is not None

    def get(self, key: int) -> Vector | None:
        """A copy of a row; None when there is none."""
        row = self._index.get(key)
        return None if row is None else self._blocks.read(row)

    def put(self, key: int, vector: Vector) -> None:
        """Add a row, or replace the one of this key."""
        self._check(vector.shape, (self.dimension,))
        row = self._index.get(key)
        if row is None:
            row = self._append(np.asarray([key], np.int64))
            self._index.set(key, row)
        self._write(row, vector[np.newaxis])

    def put_many(self, keys: Sequence[int] | NDArray[np.int64], vectors: Vector) -> None:
        """The same for many; of a key that comes twice the last row stays."""
        self._check(vectors.shape, (len(keys), self.dimension))
        wanted = np.asarray(keys, np.int64)
        unique, last = np.unique(wanted[::-1], return_index=True)
        if len(unique) < len(wanted):
            order = np.sort(len(wanted) - 1 - last)
            wanted, vectors = wanted[order], vectors[order]
        rows = self._index.rows_of(wanted)
        known = rows >= 0
        for row, place in zip(rows[known].tolist(), np.flatnonzero(known).tolist(), strict=True):
            self._write(row, vectors[place : place + 1])
        if not known.all():
            first = self._append(wanted[~known])
            self._write(first, vectors[~known] if known.any() else vectors)
            self._index.rebuild(self._keys[: self._count])

    def drop(self, keys: Iterable[int]) -> None:
        """Remove rows; unknown keys are passed over. The last row moves into the gap."""
        for key in keys:
            row = self._index.get(key)
            if row is None:
                continue
            last = self._count - 1
            if row != last:
                moved = int(self._keys[last])
                self._keys[row] = moved
                self._blocks.move(last, row)
                self._signs.move(last, row)
                self._index.set(moved, row)
            self._index.remove(key)
            self._count = last
            self._blocks.shrink(last)

    def scores(self, vector: Vector, keys: Sequence[int] | NDArray[np.int64]) -> Vector:
        """The cosine of each key's row, 0 where there is no row."""
        self._check(vector.shape, (self.dimension,))
        rows = self._index.rows_of(np.asarray(keys, np.int64))
        order = np.argsort(rows)
        order = order[np.searchsorted(rows, 0, sorter=order) :]
        found = np.zeros(len(rows), np.float32)
        found[order] = self._blocks.dot_rows(vector, rows[order])
        return found

    def nearest(self, vector: Vector, limit: int, among: Among | None = None) -> list[tuple[int, float]]:
        """The best keys with their cosines, best first; of equal ones the smaller key first."""
        self._check(vector.shape, (self.dimension,))
        if limit <= 0 or not self._count:
            return []
        rows = self._rows_among(among)
        candidates = self._count if rows is None else len(rows)
        if candidates > self._prefilter_rows:
            rows = self._prefiltered(vector, rows, max(_RESCORED_PER_HIT * limit, int(_RESCORED_SHARE * candidates)))
        found = self._blocks.dot_all(vector, self._count) if rows is None else self._blocks.dot_rows(vector, rows)
        best = _largest(found, limit)
        keys = self._keys[best if rows is None else rows[best]]
        order = np.lexsort((keys, -found[best]))
        return list(zip(keys[order].tolist(), found[best][order].tolist(), strict=True))

    def alike(self, vector: Vector, least: float, limit: int) -> list[tuple[int, float]]:
        """Rows whose cosine is at least `least`, best first. Meant for nearly equal ones, of which there are few.

        Vectors that close differ in few signs, and counting signs is much quicker than multiplying.
        """
        self._check(vector.shape, (self.dimension,))
        if limit <= 0 or not self._count:
            return []
        share = math.acos(max(min(least, 1.0), -1.0)) / math.pi  # of the signs differ at this angle
        rows = self._signs.within(vector, self._count, share, _BY_CHANCE)
        found = self._blocks.dot_rows(vector, rows)
        close = np.flatnonzero(found >= least)
        best = close[_largest(found[close], limit)]
        keys = self._keys[rows[best]]
        order = np.lexsort((keys, -found[best]))
        return list(zip(keys[order].tolist(), found[best][order].tolist(), strict=True))

    def _rows_among(self, among: Among | None) -> NDArray[np.int64] | None:
        """The rows to look at, in ascending order; None for all."""
        if among is None:
            return None
        rows = np.unique(self._index.rows_of(_array(among)))
        return rows[rows >= 0]

    def _prefiltered(self, vector: Vector, rows: NDArray[np.int64] | None, keep: int) -> NDArray[np.int64]:
        """At least `keep` rows, those whose signs differ least; all that differ as much as the last one stay in."""
        distances = self._signs.distances(vector, self._count)
        if rows is not None:
            distances = distances[rows]
        farthest = np.searchsorted(np.cumsum(np.bincount(distances)), keep)
        kept = np.flatnonzero(distances <= farthest)
        return kept if rows is None else rows[kept]

    def _write(self, first: int, rows: Vector) -> None:
        self._blocks.write(first, rows)
        self._signs.write(first, rows)

    def _append(self, keys: NDArray[np.int64]) -> int:
        first, self._count = self._count, self._count + len(keys)
        if self._count > len(self._keys):
            grown = np.empty(max(self._count, len(self._keys) * 5 // 4), np.int64)
            grown[:first] = self._keys[:first]
            self._keys = grown
        self._keys[first : self._count] = keys
        return first

    def _check(self, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
        if shape != expected:
            raise ValueError(f"A vector of {shape} does not belong among those of {expected}.")


def _largest(found: Vector, limit: int) -> NDArray[np.int64]:
    if limit >= len(found):
        return np.arange(len(found))
    return np.argpartition(found, len(found) - limit)[len(found) - limit :]


def _array(keys: Among) -> NDArray[np.int64]:
    if isinstance(keys, np.ndarray):
        return cast("NDArray[np.int64]", keys)
    return np.fromiter(keys, np.int64, len(keys))
