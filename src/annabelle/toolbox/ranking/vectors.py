"""Ranks tools by meaning: by the vectors of their texts, and of single words."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annabelle.embeddings.embedder import Embedder, EmbeddingsUnavailable
from annabelle.toolbox.ranking.index import ToolFields, ToolIndex
from annabelle.toolbox.ranking.words import STOP, split_words

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


class WordVectors:
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


_CLAUSE = re.compile(r"[.!?;,\n]+\s+|\b(?:and|also|then|but|so|while|because|und|oder|dann|et|puis|luego|oraz)\b")
_MOST_CLAUSES = 6
_LEAST_WORDS = 2


@dataclass(frozen=True, slots=True)
class MeaningScores:
    """Cosines per tool: of the whole message, of its best part, and of the tool's name alone."""

    whole: Scores
    part: Scores
    name: Scores
    near: Scores | None


class ToolVectors:
    """The vectors of a list of tools."""

    def __init__(self, index: ToolIndex, texts: Scores, names: Scores, near: WordVectors | None) -> None:
        self._index, self._texts, self._names, self._near = index, texts, names, near

    @classmethod
    async def make(cls, embedder: Embedder, index: ToolIndex) -> ToolVectors:
        """Ask for them all; EmbeddingsUnavailable when they can not be had."""
        tools, near = index.fields, None
        texts = await embedder.embed([*(tool.text for tool in tools), *(tool.title for tool in tools)])
        if texts.ndim != 2 or len(texts) != 2 * len(tools):
            raise EmbeddingsUnavailable("The vectors of the tools are not as many as were asked for.")
        texts = np.nan_to_num(texts)
        if has_word_vectors(embedder):
            near = await asyncio.to_thread(WordVectors, tools)
            await near.open(embedder)
        return cls(index, texts[: len(tools)], texts[len(tools) :], near)

    async def scores(self, embedder: Embedder, text: str) -> MeaningScores:
        """How near a message is to each tool; EmbeddingsUnavailable when its vector does not fit theirs."""
        asked = np.nan_to_num(await embedder.embed([text, *clauses(text)], query=True))
        if asked.ndim != 2 or not len(asked) or asked.shape[1] != self._texts.shape[1]:
            raise EmbeddingsUnavailable("The vectors of the message and of the tools have different lengths.")
        # Row by row in this thread: those of a matrix product would wait for each other on a busy machine.
        cosines = np.vecdot(self._texts[:, np.newaxis], asked)
        part = cosines[:, 1:].max(axis=1) if cosines.shape[1] > 1 else cosines[:, 0]
        near = None if self._near is None else await self._near.scores(embedder, self._index.asked_words(text))
        return MeaningScores(cosines[:, 0], part, np.vecdot(self._names, asked[0]), near)


def clauses(text: str) -> list[str]:
    """The parts of a message that may each ask for something; none when it has one part only."""
    parts = [
        part for part in _CLAUSE.split(text) if sum(word not in STOP for word in split_words(part)) >= _LEAST_WORDS
    ]
    return parts[:_MOST_CLAUSES] if len(parts) > 1 else []
