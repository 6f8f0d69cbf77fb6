"""What simple methods find, in the same run: BM25 of a plain full-text table, vectors alone, and 0.7 / 0.3 of both."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from annabelle.embeddings import EmbeddingConfig
from annabelle.embeddings.factory import make_embedder
from annabelle.store.engine import driver

_WORD = re.compile(r"\w+")


class Baselines:
    """One table and one matrix for the turns of a dialogue, without anything clever."""

    def __init__(self, texts: Sequence[str], ids: Sequence[str]) -> None:
        self._ids = list(ids)
        self._table = driver.connect(":memory:")
        self._table.execute("CREATE VIRTUAL TABLE turns USING fts5(text, tokenize = 'porter unicode61')")
        self._table.executemany("INSERT INTO turns (rowid, text) VALUES (?, ?)", enumerate(texts))
        self._embedder = make_embedder(EmbeddingConfig(), None)
        self._texts = list(texts)
        self._matrix: NDArray[np.float32] | None = None

    async def ask(self, query: str, limit: int) -> dict[str, list[str]]:
        if self._matrix is None:
            self._matrix = await self._embedder.embed(self._texts)
        vectors = self._matrix @ (await self._embedder.embed([query], query=True))[0]
        words = self._bm25(query)
        scores = {"bm25": words, "vector": vectors, "0.7/0.3": 0.7 * _normal(vectors) + 0.3 * _normal(words)}
        return {
            name: [self._ids[n] for n in np.argsort(-score, kind="stable")[:limit]] for name, score in scores.items()
        }

    def _bm25(self, query: str) -> NDArray[np.float32]:
        scores = np.zeros(len(self._ids), np.float32)
        words = " OR ".join(f'"{word}"' for word in _WORD.findall(query))
        if words:
            for row, rank in self._table.execute("SELECT rowid, rank FROM turns WHERE turns MATCH ?", (words,)):
                scores[row] = -rank
        return scores


def _normal(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)
