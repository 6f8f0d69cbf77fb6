"""The rows that meaning and words propose, before anything else is known of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from annabelle.servers.memory.search.found import Tier

CANDIDATES = 60
"""How many vectors meaning proposes; more of them changes the first ten in no set that was measured."""
TEXT_CANDIDATES = 100
UNRELATED = 0.1
"""A cosine below it means nothing by itself."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Rows with their cosines (none while there are no vectors), and rows with how much of the words they hold."""

    tier: Tier
    cosines: Mapping[int, float] | None
    texts: Mapping[int, float]

    def with_cosines(self, cosines: Mapping[int, float]) -> Proposal:
        """The same with the cosines of rows that only the words had proposed."""
        return replace(self, cosines={**cosines, **(self.cosines or {})})

    def text(self, row: int) -> float:
        """From 0 to 1: beside the row that holds most of the words."""
        best = max(self.texts.values(), default=0.0)
        return self.texts.get(row, 0.0) / best if best > 0 else 0.0

    def cosine(self, row: int) -> float:
        return 0.0 if self.cosines is None else self.cosines.get(row, 0.0)

    def is_related(self, row: int) -> bool:
        return row in self.texts or self.cosine(row) >= UNRELATED
