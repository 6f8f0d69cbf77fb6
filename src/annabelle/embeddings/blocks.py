"""Rows of numbers in blocks, so that growing never copies what is there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK_BYTES = 4 << 20
_GATHERED_ROWS = 4096

Vector = NDArray[np.float32]


class Blocks:
    """Rows in blocks of about 4 MB, of which the system gives only the pages that were written.

    One array would have to be copied to grow, and for that moment 100,000 rows would take twice their 100 MB.
    """

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._size = max(64, _BLOCK_BYTES // (4 * dimension))
        self._numbers: list[Vector] = []

    def write(self, first: int, rows: Vector) -> None:
        """Put rows one after the other, from `first` on. What is no number can not be near anything: zeros."""
        done = 0
        while done < len(rows):
            block, start = divmod(first + done, self._size)
            while block >= len(self._numbers):
                self._numbers.append(np.empty((self._size, self._dimension), np.float32))
            part = rows[done : done + self._size - start]
            finite = np.isfinite(part).all(axis=1, keepdims=True)
            target = self._numbers[block][start : start + len(part)]
            target[:] = part if finite.all() else np.where(finite, part, 0)
            done += len(part)

    def read(self, row: int) -> Vector:
        block, place = divmod(row, self._size)
        return self._numbers[block][place].copy()

    def move(self, row: int, to: int) -> None:
        (block, place), (to_block, to_place) = divmod(row, self._size), divmod(to, self._size)
        self._numbers[to_block][to_place] = self._numbers[block][place]

    def shrink(self, count: int) -> None:
        """Give back the blocks behind `count` rows, all but one, so that a row coming and going costs nothing."""
        keep = -(-count // self._size) + 1
        del self._numbers[keep:]

    def dot_all(self, vector: Vector, count: int) -> Vector:
        found = np.empty(count, np.float32)
        for block, start in enumerate(range(0, count, self._size)):
            part = found[start : start + self._size]
            # Not a matrix product: its threads burn more time waiting for each other than they save here.
            np.vecdot(self._numbers[block][: len(part)], vector, out=part)
        return found

    def dot_rows(self, vector: Vector, rows: NDArray[np.int64]) -> Vector:
        """The same for rows in ascending order, in parts, so that many rows are never copied together."""
        found = np.empty(len(rows), np.float32)
        start = 0
        while start < len(rows):
            block = int(rows[start]) // self._size
            end = int(np.searchsorted(rows, (block + 1) * self._size))
            end = min(end, start + _GATHERED_ROWS)
            places = rows[start:end] - block * self._size
            np.vecdot(self._numbers[block][places], vector, out=found[start:end])
            start = end
        return found
