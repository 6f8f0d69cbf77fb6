"""Puts tools in order for a text. Words, concepts and meaning each have a say; a slow or broken embedder has none."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

import numpy as np

from annabelle.core.contract import ToolList
from annabelle.embeddings.embedder import Embedder, EmbeddingsUnavailable
from annabelle.toolbox.ranking.fusion import fused
from annabelle.toolbox.ranking.index import ToolIndex
from annabelle.toolbox.ranking.vectors import MeaningScores, ToolVectors, clauses
from annabelle.toolbox.ranking.words import bounded

_log = logging.getLogger(__name__)

_KEPT_LISTS = 8
_MOST = 60
_MOST_ABOUT = 15
_PATIENCE_SECONDS = 1.0
Method = Literal["hybrid", "words"]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A tool's name and how well it fits, from 0 to 1."""

    name: str
    score: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """The tools of a list, best first, those that do not fit at all left out."""

    tools: tuple[Ranked, ...]
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

    def __init__(self, embedder: Embedder, patience_seconds: float = _PATIENCE_SECONDS) -> None:
        self._embedder, self._patience = embedder, patience_seconds
        self._known: OrderedDict[tuple[str, int], _Known] = OrderedDict()

    async def rank(self, tools: ToolList, text: str) -> Ranking:
        """Best first. Vectors that do not come in time are made in the background, for the next text."""
        if not tools.tools:
            return Ranking((), "words")
        text = bounded(text)
        known = await self._of(tools)
        evidence = known.index.evidence(text)
        meaning = await self._meaning(known, text)
        both = fused(evidence, meaning)
        names, scores = known.index.names, both.scores
        first: list[int] = [row for row in both.order[:_MOST].tolist() if scores[row] > 0]
        ranked = tuple(Ranked(names[row], float(scores[row])) for row in first)
        about: list[int] = np.argsort(-evidence.concepts, kind="stable")[:_MOST_ABOUT].tolist()
        same = tuple(names[row] for row in about if evidence.concepts[row] > 0)
        return Ranking(ranked, "hybrid" if meaning is not None else "words", same, len(clauses(text)) > 1)

    async def _of(self, tools: ToolList) -> _Known:
        key = tools.version, len(tools.tools)
        known = self._known.get(key)
        if known is None:
            # A list of hundreds takes a tenth of a second, in which other turns go on.
            known = _Known(await asyncio.to_thread(ToolIndex, tools.tools))
            known = self._known.setdefault(key, known)
        self._known.move_to_end(key)
        while len(self._known) > _KEPT_LISTS:
            self._known.popitem(last=False)[1].stop()
        return known

    async def _meaning(self, known: _Known, text: str) -> MeaningScores | None:
        """None when there are no vectors within the patience; a turn goes on by words."""
        try:
            async with asyncio.timeout(self._patience):
                vectors = await known.vectors(self._embedder)
                return await vectors.scores(self._embedder, text)
        except EmbeddingsUnavailable as trouble:
            known.forget()
            _log.debug("tools are ranked by words: %s", trouble.message)
        except TimeoutError:
            _log.debug("tools are ranked by words: the vectors take too long")
        return None


class _Known:
    """One list's index, and its vectors once they are there."""

    def __init__(self, index: ToolIndex) -> None:
        self.index = index
        self._making: asyncio.Task[ToolVectors] | None = None

    async def vectors(self, embedder: Embedder) -> ToolVectors:
        """Wait for them; who stops waiting does not stop them."""
        if self._making is None or (self._making.done() and self._making.cancelled()):
            self._making = asyncio.create_task(ToolVectors.make(embedder, self.index))
            self._making.add_done_callback(_seen)
        return await asyncio.shield(self._making)

    def forget(self) -> None:
        """They do not fit, or could not be made: the next text asks anew."""
        if self._making is not None and self._making.done():
            self._making = None

    def stop(self) -> None:
        if self._making is not None:
            self._making.cancel()


def _seen(task: asyncio.Task[ToolVectors]) -> None:
    """A failure nobody waited for is no trouble of its own."""
    if not task.cancelled():
        task.exception()
