"""What a search returns. Cheap to import, because results of tools show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Tier = Literal["hybrid", "text", "substring"]
"""By meaning and words; by words while there are no vectors; by the query as it stands when neither finds anything."""


_FITTING = 0.25
"""Of twenty facts that have nothing to do with a question, the closest seldom reaches it by packaged vectors."""


class ScoreParts(BaseModel):
    """What a score is made of; what is 0 is left out of the answer's text."""

    model_config = ConfigDict(frozen=True)

    vector: float = Field(default=0.0, description="Closeness in meaning")
    text: float = Field(default=0.0, description="Words in common, beside the row that has most")
    context: float = Field(default=0.0, description="What the turns before and after add")
    speaker: float = Field(default=0.0, description="1 when the query names who said it")
    date: float = Field(default=0.0, description="1 when it was said at a time the query names")
    recency: float = 0.0
    confidence: float = 0.0

    @property
    def fits(self) -> bool:
        """Whether it shares words with the query or means about the same, so that it may be the answer."""
        return self.text > 0 or self.vector >= _FITTING


@dataclass(frozen=True, slots=True)
class MemoryHit:
    row_id: int
    score: float
    parts: ScoreParts
    before: int = 0
    """The turn before it in its conversation; 0 when there is none."""
    after: int = 0


@dataclass(frozen=True, slots=True)
class SearchHits:
    """Best first."""

    tier: Tier
    hits: tuple[MemoryHit, ...] = ()
