"""Puts tools in order for a text. Words, concepts and meaning each have a say; a slow or broken embedder has none."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from annabelle.core.contract import ToolList
from annabelle.embeddings.embedder import Embedder, EmbeddingsUnavailable
from annabelle.toolbox.ranking.index import ToolIndex, WordEvidence
from annabelle.toolbox.ranking.vectors import MeaningScores, ToolVectors, clauses
from annabelle.toolbox.ranking.words import clip_text

Scores = NDArray[np.float32]

# Measured on two public sets of tools and questions; each helps on both. Weighing scores was better than adding ranks.
_WORDS, _CONCEPTS, _CONCEPTS_ELSEWHERE, _NEAR = 0.4, 0.4, 1.2, 0.2
_WHOLE, _PART, _NAME = 0.7, 0.3, 0.1
# What makes the first tool sure: that all agree on it, that it is ahead, and that it has the words of the text.
_BASE, _BEST, _LEAD, _COVERED = -3.9, 3.2, 6.4, 1.6


@dataclass(frozen=True, slots=True)
class FusedScores:
    """The rows of the tools, best first, and their scores from 0 to 1."""

    order: NDArray[np.int64]
    scores: Scores


def fuse_scores(evidence: WordEvidence, meaning: MeaningScores | None) -> FusedScores:
    """One order of all tools. The first score says how sure the first one is, the others are in proportion to it."""
    # Only concepts understand other languages, so there they count for more.
    parts = [(_WORDS, evidence.words), (_CONCEPTS_ELSEWHERE if evidence.elsewhere else _CONCEPTS, evidence.concepts)]
    if meaning is not None:
        parts += [(_WHOLE, meaning.whole), (_PART, meaning.part), (_NAME, meaning.name)]
        if meaning.near is not None:
            parts.append((_NEAR, meaning.near))
    total = np.zeros_like(evidence.words)
    for weight, scores in parts:
        total += np.float32(weight) * _rescale(scores)
    total /= np.float32(sum(weight for weight, _ in parts))
    order = np.argsort(-total, kind="stable")
    best = float(total[order[0]]) if len(order) else 0.0
    if best <= 0:
        return FusedScores(order, np.zeros_like(total))
    return FusedScores(order, total * np.float32(_estimate_confidence(evidence, total, order) / best))


def _rescale(scores: Scores) -> Scores:
    """From 0 for the worst tool to 1 for the best: cosines of one model lie close together, those of another do not."""
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)


def _estimate_confidence(evidence: WordEvidence, total: Scores, order: NDArray[np.int64]) -> float:
    """How likely the first tool is the right one: fitted to how often it was, so that 0.6 means three times in five."""
    first = int(order[0])
    best, follower = float(total[first]), float(total[order[min(1, len(order) - 1)]])
    covered = min(float(evidence.words[first]) / evidence.asked, 1.0) if evidence.asked > 0 else 0.0
    return 1 / (1 + math.exp(-(_BASE + _BEST * best + _LEAD * (best - follower) + _COVERED * covered)))


_log = logging.getLogger(__name__)

_KEPT_LISTS = 8
_MOST = 60
_MOST_ABOUT = 15
_TIMEOUT_SECONDS = 1.0
Method = Literal["hybrid", "words"]


@dataclass(frozen=True, slots=True)
class RankedTool:
    """A tool's name and how well it fits, from 0 to 1."""

    name: str
    score: float


@dataclass(frozen=True, slots=True)
class ToolRanking:
    """The tools of a list, best first, those that do not fit at all left out."""

    tools: tuple[RankedTool, ...]
    method: Method
    about: tuple[str, ...] = ()
    """Those that are about the same things as the text, whatever their words and vectors say."""
    in_parts: bool = False
    """The text has several parts, and each may ask for a tool of its own."""

    @property
    def top_score(self) -> float:
        return self.tools[0].score if self.tools else 0.0


class ToolRanker:
    """Ranks any list of tools. What it makes of a list it keeps, by the version of the list."""

    def __init__(self, embedder: Embedder, timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        self._embedder, self._timeout = embedder, timeout_seconds
        self._known: OrderedDict[tuple[str, int], _IndexedTools] = OrderedDict()

    async def rank(self, tools: ToolList, text: str) -> ToolRanking:
        """Best first. Vectors that do not come in time are made in the background, for the next text."""
        if not tools.tools:
            return ToolRanking((), "words")
        text = clip_text(text)
        known = await self._load_index(tools)
        evidence = known.index.evidence(text)
        meaning = await self._meaning(known, text)
        both = fuse_scores(evidence, meaning)
        names, scores = known.index.names, both.scores
        first: list[int] = [row for row in both.order[:_MOST].tolist() if scores[row] > 0]
        ranked = tuple(RankedTool(names[row], float(scores[row])) for row in first)
        about: list[int] = np.argsort(-evidence.concepts, kind="stable")[:_MOST_ABOUT].tolist()
        same = tuple(names[row] for row in about if evidence.concepts[row] > 0)
        return ToolRanking(ranked, "hybrid" if meaning is not None else "words", same, len(clauses(text)) > 1)

    async def _load_index(self, tools: ToolList) -> _IndexedTools:
        key = tools.version, len(tools.tools)
        known = self._known.get(key)
        if known is None:
            # A list of hundreds takes a tenth of a second, in which other turns go on.
            known = _IndexedTools(await asyncio.to_thread(ToolIndex, tools.tools))
            known = self._known.setdefault(key, known)
        self._known.move_to_end(key)
        while len(self._known) > _KEPT_LISTS:
            self._known.popitem(last=False)[1].stop()
        return known

    async def _meaning(self, known: _IndexedTools, text: str) -> MeaningScores | None:
        """None when there are no vectors within the patience; a turn goes on by words."""
        try:
            async with asyncio.timeout(self._timeout):
                vectors = await known.vectors(self._embedder)
                return await vectors.scores(self._embedder, text)
        except EmbeddingsUnavailable as trouble:
            known.forget()
            _log.debug("tools are ranked by words: %s", trouble.message)
        except TimeoutError:
            _log.debug("tools are ranked by words: the vectors take too long")
        return None


class _IndexedTools:
    """One list's index, and its vectors once they are there."""

    def __init__(self, index: ToolIndex) -> None:
        self.index = index
        self._making: asyncio.Task[ToolVectors] | None = None

    async def vectors(self, embedder: Embedder) -> ToolVectors:
        """Wait for them; who stops waiting does not stop them."""
        if self._making is None or (self._making.done() and self._making.cancelled()):
            self._making = asyncio.create_task(ToolVectors.make(embedder, self.index))
            self._making.add_done_callback(_ignore_failure)
        return await asyncio.shield(self._making)

    def forget(self) -> None:
        """They do not fit, or could not be made: the next text asks anew."""
        if self._making is not None and self._making.done():
            self._making = None

    def stop(self) -> None:
        if self._making is not None:
            self._making.cancel()


def _ignore_failure(task: asyncio.Task[ToolVectors]) -> None:
    """A failure nobody waited for is no trouble of its own."""
    if not task.cancelled():
        task.exception()
