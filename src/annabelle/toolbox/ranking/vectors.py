"""Ranks tools by meaning: the cosine of their texts with a message, as a whole and in its parts."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annabelle.embeddings.embedder import Embedder, EmbeddingsUnavailable
from annabelle.toolbox.ranking.index import ToolIndex
from annabelle.toolbox.ranking.near_words import NearWords, has_word_vectors
from annabelle.toolbox.ranking.words import STOP, words

Scores = NDArray[np.float32]

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

    def __init__(self, index: ToolIndex, texts: Scores, names: Scores, near: NearWords | None) -> None:
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
            near = await asyncio.to_thread(NearWords, tools)
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
    parts = [part for part in _CLAUSE.split(text) if sum(word not in STOP for word in words(part)) >= _LEAST_WORDS]
    return parts[:_MOST_CLAUSES] if len(parts) > 1 else []
