"""Ranks tools by the words they share with a text: BM25 over fields that count differently."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from annabelle.toolbox.ranking.fields import ToolFields
from annabelle.toolbox.ranking.words import terms

Scores = NDArray[np.float32]

_SATURATION = 1.2
# How much a word counts in a field, and how much a long field is held against it.
_WEIGHTS = (("name", 2.0, 0.3), ("description", 1.0, 0.6), ("parameters", 1.0, 0.6), ("hints", 0.6, 0.7))
_PLACE_WEIGHT = 0.4
_UNKNOWN = 0.6


class LexicalIndex:
    """An inverted index in arrays: for each word the tools that have it, and what it is worth there."""

    def __init__(self, tools: Sequence[ToolFields]) -> None:
        self.size = len(tools)
        weighed: list[dict[str, float]] = [{} for _ in tools]
        for field, weight, length_matters in _WEIGHTS:
            counted = [Counter(terms(getattr(tool, field))) for tool in tools]
            average = max(sum(sum(count.values()) for count in counted) / max(self.size, 1), 1e-9)
            for row, count in enumerate(counted):
                length = 1 - length_matters + length_matters * sum(count.values()) / average
                for term, times in count.items():
                    weighed[row][term] = weighed[row].get(term, 0.0) + weight * times / length
        for row, tool in enumerate(tools):
            for term in set(terms(tool.place)):
                weighed[row][term] = weighed[row].get(term, 0.0) + _PLACE_WEIGHT
        postings: dict[str, list[tuple[int, float]]] = {}
        for row, found in enumerate(weighed):
            for term, worth in found.items():
                postings.setdefault(term, []).append((row, worth))
        self._rarity: dict[str, float] = {}
        self._postings: dict[str, tuple[NDArray[np.int64], Scores]] = {}
        for term, entries in postings.items():
            rarity = math.log(1 + (self.size - len(entries) + 0.5) / (len(entries) + 0.5))
            worth = np.asarray([worth for _, worth in entries], np.float32)
            rows = np.asarray([row for row, _ in entries], np.int64)
            self._rarity[term] = rarity
            saturated = rarity * worth * (_SATURATION + 1) / (worth + _SATURATION)
            self._postings[term] = rows, saturated.astype(np.float32)

    def scores(self, asked: Iterable[str]) -> Scores:
        """What the tools are worth for these stems, each counted once."""
        found = np.zeros(self.size, np.float32)
        for term in sorted(set(asked)):
            entry = self._postings.get(term)
            if entry is not None:
                found[entry[0]] += entry[1]
        return found

    def rarity(self, term: str) -> float:
        """How much a word tells tools apart; one that no tool has says nothing of them, but it was asked for."""
        return self._rarity.get(term, _UNKNOWN * math.log(1 + self.size / 0.5))

    def ideal(self, asked: Iterable[str]) -> float:
        """What a tool is worth that has about each of these once."""
        return (_SATURATION + 1) / 2 * sum(self.rarity(term) for term in set(asked))
