"""How the parts of a score come together. Each weight was measured on conversations of several kinds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from annabelle.servers.memory.search.turns import Turns

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

_RECENT_DAYS = 30.0


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


def around(row: int, own: Mapping[int, float], turns: Turns) -> float:
    """What the turns near this one add to its score."""
    total, place = 0.0, row
    for share in BEFORE:
        place = turns.before(place)
        if not place:
            break
        total += share * own.get(place, 0.0)
    place = row
    for share in AFTER:
        place = turns.after(place)
        if not place:
            break
        total += share * own.get(place, 0.0)
    asked = turns.before(row)
    if asked and turns.asks(asked):
        total += ANSWER * own.get(asked, 0.0)
    return total


def recency(at: datetime, now: datetime) -> float:
    """1 for now, half for a month ago. What a clock that was set back left in the future counts as now."""
    days = max((now - at).total_seconds() / 86_400, 0.0)
    return math.exp2(-days / _RECENT_DAYS)
