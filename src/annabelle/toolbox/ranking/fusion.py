"""Weighs what words, concepts and meaning say of each tool into one order, and says how sure it is of the first."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annabelle.toolbox.ranking.index import Evidence
from annabelle.toolbox.ranking.vectors import MeaningScores

Scores = NDArray[np.float32]

# Measured on two public sets of tools and questions; each helps on both. Weighing scores was better than adding ranks.
_WORDS, _CONCEPTS, _CONCEPTS_ELSEWHERE, _NEAR = 0.4, 0.4, 1.2, 0.2
_WHOLE, _PART, _NAME = 0.7, 0.3, 0.1
# What makes the first tool sure: that all agree on it, that it is ahead, and that it has the words of the text.
_BASE, _BEST, _LEAD, _COVERED = -3.9, 3.2, 6.4, 1.6


@dataclass(frozen=True, slots=True)
class Fused:
    """The rows of the tools, best first, and their scores from 0 to 1."""

    order: NDArray[np.int64]
    scores: Scores


def fused(evidence: Evidence, meaning: MeaningScores | None) -> Fused:
    """One order of all tools. The first score says how sure the first one is, the others are in proportion to it."""
    # Only concepts understand other languages, so there they count for more.
    parts = [(_WORDS, evidence.words), (_CONCEPTS_ELSEWHERE if evidence.elsewhere else _CONCEPTS, evidence.concepts)]
    if meaning is not None:
        parts += [(_WHOLE, meaning.whole), (_PART, meaning.part), (_NAME, meaning.name)]
        if meaning.near is not None:
            parts.append((_NEAR, meaning.near))
    total = np.zeros_like(evidence.words)
    for weight, scores in parts:
        total += np.float32(weight) * _spread(scores)
    total /= np.float32(sum(weight for weight, _ in parts))
    order = np.argsort(-total, kind="stable")
    best = float(total[order[0]]) if len(order) else 0.0
    if best <= 0:
        return Fused(order, np.zeros_like(total))
    return Fused(order, total * np.float32(_sure(evidence, total, order) / best))


def _spread(scores: Scores) -> Scores:
    """From 0 for the worst tool to 1 for the best: cosines of one model lie close together, those of another do not."""
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)


def _sure(evidence: Evidence, total: Scores, order: NDArray[np.int64]) -> float:
    """How likely the first tool is the right one: fitted to how often it was, so that 0.6 means three times in five."""
    first = int(order[0])
    best, follower = float(total[first]), float(total[order[min(1, len(order) - 1)]])
    covered = min(float(evidence.words[first]) / evidence.asked, 1.0) if evidence.asked > 0 else 0.0
    return 1 / (1 + math.exp(-(_BASE + _BEST * best + _LEAD * (best - follower) + _COVERED * covered)))
