"""Ranks tools by words that mean nearly the same as those of a text, through the vectors of single words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from annabelle.embeddings.embedder import Embedder, EmbeddingsUnavailable
from annabelle.toolbox.ranking.fields import ToolFields
from annabelle.toolbox.ranking.words import STOP

Scores = NDArray[np.float32]

_CLOSE = 0.35
_MOST_ASKED = 40
_MOST_WORDS = 12_000
_MOST_FOUND = 4_000
# How much a word counts where it stands.
_WORTH = (("name", 1.0), ("description", 0.9), ("parameters", 0.75), ("hints", 0.6))


def has_word_vectors(embedder: Embedder) -> bool:
    """Only the packaged model is made of words, and quick enough to be asked for thousands of them."""
    return embedder.model.provider == "embedded"


class NearWords:
    """The vectors of all words of a list of tools, and for each word the tools that have it."""

    def __init__(self, tools: Sequence[ToolFields]) -> None:
        self._size = len(tools)
        postings: dict[str, dict[int, float]] = {}
        for field, worth in reversed(_WORTH):  # the last one to write is where it counts most
            for row, tool in enumerate(tools):
                for word in getattr(tool, field):
                    if word not in STOP and (word in postings or len(postings) < _MOST_WORDS):
                        postings.setdefault(word, {})[row] = worth
        self.words = tuple(sorted(postings))
        lengths = [len(postings[word]) for word in self.words]
        self._ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self._rows = np.asarray([row for word in self.words for row in postings[word]], np.int64)
        self._worth = np.asarray([worth for word in self.words for worth in postings[word].values()], np.float32)
        self._vectors = np.zeros((0, 0), np.float32)
        self._found: dict[str, tuple[NDArray[np.int64], Scores]] = {}

    async def open(self, embedder: Embedder) -> None:
        self._vectors = _first_half(await embedder.embed(self.words))

    async def scores(self, embedder: Embedder, asked: Sequence[tuple[str, float]]) -> Scores:
        """For each word with its rarity the nearest word of each tool; from 0 to 1, where 1 has all of them."""
        total = np.zeros(self._size, np.float32)
        asked = asked[:_MOST_ASKED]
        weight = sum(rarity for _, rarity in asked)
        if weight <= 0 or not len(self._vectors):
            return total
        if len(self._found) > _MOST_FOUND:
            self._found.clear()
        await self._look_up(embedder, [word for word, _ in asked if word not in self._found])
        for word, rarity in asked:
            rows, likeness = self._found[word]
            total[rows] += np.float32(rarity) * likeness
        return total / np.float32(weight)

    async def _look_up(self, embedder: Embedder, unknown: Sequence[str]) -> None:
        """Find what is near to words that were not asked for before; most messages use the same ones."""
        if not unknown:
            return
        vectors = _first_half(await embedder.embed(unknown, query=True))
        if vectors.shape != (len(unknown), self._vectors.shape[1]):
            raise EmbeddingsUnavailable("The vectors of words have different lengths.")
        for word, vector in zip(unknown, vectors, strict=True):
            # One thread: those of a matrix product would wait for each other on a busy machine.
            likeness = np.vecdot(self._vectors, vector)
            close = np.flatnonzero(likeness > _CLOSE)
            self._found[word] = self._best(close, likeness[close] ** 2)

    def _best(self, close: NDArray[np.int64], likeness: Scores) -> tuple[NDArray[np.int64], Scores]:
        """The tools that have one of these words, each with the likeness of the nearest it has."""
        starts, ends = self._ends[close].tolist(), self._ends[close + 1].tolist()
        best = np.zeros(self._size, np.float32)
        for start, end, like in zip(starts, ends, likeness.tolist(), strict=True):
            rows = self._rows[start:end]
            best[rows] = np.maximum(best[rows], np.float32(like) * self._worth[start:end])
        rows = np.flatnonzero(best)
        return rows, best[rows]


def _first_half(vectors: Scores) -> Scores:
    """The half of the numbers the model was trained to say most with, at unit length: twice as quick to compare."""
    half = np.nan_to_num(vectors[:, : max(1, vectors.shape[1] // 2)])
    return np.ascontiguousarray(half / np.maximum(np.linalg.norm(half, axis=1, keepdims=True), 1e-9))
