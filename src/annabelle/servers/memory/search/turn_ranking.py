"""Orders turns of conversations: meaning and words, what was said around them, by whom and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import nlargest
from typing import Literal

from annabelle.servers.memory.search.found import Found, Hit, Parts, part
from annabelle.servers.memory.search.fusion import (
    AFTER,
    BEFORE,
    DATE,
    RECENCY,
    SPEAKER,
    Weights,
    around,
    fuse,
    recency,
)
from annabelle.servers.memory.search.proposal import Proposal
from annabelle.servers.memory.search.query import Query
from annabelle.servers.memory.search.turns import Standing, Turns

_BEST = 1 + sum(BEFORE) + sum(AFTER) + SPEAKER + DATE + RECENCY


def with_neighbours(proposal: Proposal, turns: Turns) -> dict[int, Standing]:
    """What was proposed, and the turns that gain from standing beside it."""
    near: dict[int, Standing] = {}
    for row in [*(proposal.cosines or ()), *proposal.texts]:
        _add(near, turns, row, "before", len(AFTER))
        _add(near, turns, row, "after", len(BEFORE))
    return near


def _add(near: dict[int, Standing], turns: Turns, row: int, side: Literal["before", "after"], steps: int) -> None:
    """The row, and so many turns on one side of it."""
    for _ in range(steps + 1):
        place = near.get(row) or turns.get(row)
        if place is None:
            return
        near[row] = place
        row = place.before if side == "before" else place.after


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for, by whom it may have been said, and when it is asked."""

    query: Query
    named: frozenset[int]
    at: float

    def told(self, place: Standing) -> float:
        """What is known of a turn without its words."""
        total = RECENCY * self.recency(place)
        if self.named and place.speaker in self.named:
            total += SPEAKER
        if self.query.dates and self.on_a_day(place):
            total += DATE
        return total

    def recency(self, place: Standing) -> float:
        return recency(place.said_at, self.at)

    def on_a_day(self, place: Standing) -> bool:
        said_at = datetime.fromtimestamp(place.said_at, UTC)
        return any(said_at in date for date in self.query.dates)


def rank(
    proposal: Proposal,
    rows: Iterable[int],
    standing: Mapping[int, Standing],
    asked: Asked,
    weights: Weights,
    limit: int,
) -> Found:
    own = fuse(proposal.cosines, proposal.texts, weights)
    scores: dict[int, float] = {}
    context: dict[int, float] = {}
    for row in rows:
        context[row] = around(row, own, standing)
        if context[row] or proposal.is_related(row):
            scores[row] = own.get(row, 0.0) + context[row] + asked.told(standing[row])
    hits: list[Hit] = []
    for row in nlargest(limit, scores, key=lambda row: (scores[row], row)):
        place = standing[row]
        parts = Parts(
            vector=part(proposal.cosine(row)),
            text=part(proposal.text(row)),
            context=part(context[row]),
            speaker=float(place.speaker in asked.named),
            date=float(asked.on_a_day(place)),
            recency=part(asked.recency(place)),
        )
        hits.append(Hit(row, part(scores[row] / _BEST), parts, place.before, place.after))
    return Found(proposal.tier, tuple(hits))
