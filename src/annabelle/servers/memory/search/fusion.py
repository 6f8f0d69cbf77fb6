"""How the parts of a score come together. Each weight was measured on conversations of several kinds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from annabelle.servers.memory.search.turns import Standing

BEFORE = (0.25, 0.25)
"""What a turn gains from the one before it and the one before that: they say what "she" and "there" are."""
AFTER = (0.15, 0.1)
ANSWER = 0.15
"""What the answer to a question gains from it in addition."""
SPEAKER = 0.2
DATE = 0.1
RECENCY = 0.03
CONFIDENCE = 0.05
"""Priors: enough to order equals, never enough to bury a clear hit."""

_HALF_LIFE_SECONDS = 30.0 * 86_400


@dataclass(frozen=True, slots=True)
class Weights:
    """Shares of meaning and words in a score. What they add up to does not matter."""

    vector: float = 0.45
    text: float = 0.55

    def shares(self) -> tuple[float, float]:
        total = self.vector + self.text
        return (0.5, 0.5) if total <= 0 else (self.vector / total, self.text / total)


def fuse(cosines: Mapping[int, float] | None, texts: Mapping[int, float], weights: Weights) -> dict[int, float]:
    """One number from 0 to 1 for each row that has either; the best of each part counts as 1."""
    best_text = max(texts.values(), default=0.0)
    words = {row: score / best_text for row, score in texts.items()} if best_text > 0 else {}
    if cosines is None:
        return words
    by_meaning, by_words = weights.shares()
    best = max(cosines.values(), default=0.0)
    closeness = {row: max(cosine, 0.0) / best for row, cosine in cosines.items()} if best > 0 else {}
    return {
        row: by_meaning * closeness.get(row, 0.0) + by_words * words.get(row, 0.0)
        for row in closeness.keys() | words.keys()
    }


def around(row: int, own: Mapping[int, float], standing: Mapping[int, Standing]) -> float:
    """What the turns near this one add to its score. `standing` has every turn that scores, and those beside it."""
    total, here = 0.0, standing[row]
    place: Standing | None = here
    for share in BEFORE:
        if place is None or not place.before:
            break
        total += share * own.get(place.before, 0.0)
        place = standing.get(place.before)
    place = here
    for share in AFTER:
        if place is None or not place.after:
            break
        total += share * own.get(place.after, 0.0)
        place = standing.get(place.after)
    asked = standing.get(here.before)
    if asked is not None and asked.asks:
        total += ANSWER * own.get(here.before, 0.0)
    return total


def recency(at: float, now: float) -> float:
    """1 for now, half for a month ago, both in seconds. What a clock set back left in the future counts as now."""
    return math.exp2(-max(now - at, 0.0) / _HALF_LIFE_SECONDS)
