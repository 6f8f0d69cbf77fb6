"""The signs of vectors, a bit for each number: counting those that differ says quickly which are far apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]


class Signs:
    """A row of bits beside each row of numbers, packed into words: the first words of all rows together, then the
    second ones, which counts quickest. 100,000 rows of 256 numbers take 3 MB, so growing may copy them."""

    def __init__(self, dimension: int) -> None:
        self.words = -(-dimension // 64)
        self._bits = np.empty((self.words, 64), np.uint64)

    def write(self, first: int, rows: Vector) -> None:
        """Put the signs of rows one after the other, from `first` on."""
        end, room = first + len(rows), self._bits.shape[1]
        if end > room:
            grown = np.empty((self.words, max(end, room * 3 // 2)), np.uint64)
            grown[:, :first] = self._bits[:, :first]
            self._bits = grown
        self._bits[:, first:end] = self._packed(rows)

    def move(self, row: int, to: int) -> None:
        self._bits[:, to] = self._bits[:, row]

    def distances(self, vector: Vector, count: int) -> NDArray[np.uint16]:
        """How many signs differ from the vector's, for each of the first `count` rows."""
        wanted = self._packed(vector[np.newaxis])
        found = np.zeros(count, np.uint16)
        for word in range(self.words):
            found += np.bitwise_count(self._bits[word, :count] ^ wanted[word])
        return found

    def within(self, vector: Vector, count: int, share: float, by_chance: float) -> NDArray[np.int64]:
        """The rows of which no larger share of signs differs than `share`, give or take what chance does to it.

        Word by word, so that all but the first are counted for the few rows that are left.
        `by_chance`: how many standard deviations are still taken for chance.
        """
        wanted = self._packed(vector[np.newaxis])
        differing = np.bitwise_count(self._bits[0, :count] ^ wanted[0])
        rows = np.flatnonzero(differing <= _most(64, share, by_chance))
        differing = differing[rows].astype(np.uint16)
        for word in range(1, self.words):
            differing += np.bitwise_count(self._bits[word].take(rows) ^ wanted[word])
            near = np.flatnonzero(differing <= _most(64 * (word + 1), share, by_chance))
            rows, differing = rows[near], differing[near]
        return rows

    def _packed(self, rows: Vector) -> NDArray[np.uint64]:
        bits = np.packbits(rows > 0, axis=1)
        padded = np.zeros((len(rows), self.words * 8), np.uint8)
        padded[:, : bits.shape[1]] = bits
        return padded.view(np.uint64).T


def _most(signs: int, share: float, by_chance: float) -> float:
    return signs * share + by_chance * (signs * share * (1 - share)) ** 0.5
