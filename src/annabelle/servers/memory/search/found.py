"""What a search gives back: rows, how sure it is of each, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tier = Literal["hybrid", "text", "substring"]
"""By meaning and words; by words while there are no vectors; by the query as it stands when neither finds anything."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a score is made of, each from 0 to 1."""

    vector: float = 0.0
    """How close in meaning: the cosine."""
    text: float = 0.0
    """How much of the query's words, beside the row that has most of them."""
    context: float = 0.0
    """What the turns right before and after add."""
    speaker: float = 0.0
    """1 when the query names who said it."""
    date: float = 0.0
    """1 when it was said at a time the query names."""
    recency: float = 0.0
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Hit:
    row_id: int
    score: float
    parts: Parts
    before: int = 0
    """The turn before it in its conversation; 0 when there is none."""
    after: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Best first."""

    tier: Tier
    hits: tuple[Hit, ...] = ()


def part(value: float) -> float:
    """As it is shown: within 0 and 1, to four digits."""
    return round(min(max(value, 0.0), 1.0), 4)
