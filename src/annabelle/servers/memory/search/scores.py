"""Scores and ranks what a search found: facts, and turns with their neighbours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from heapq import nlargest
from typing import Literal

from sqlalchemy import Connection, bindparam, select

from annabelle.core.trust import FactCategory
from annabelle.servers.memory.search.hits import MemoryHit, ScoreParts, SearchHits, Tier
from annabelle.servers.memory.search.query import SearchQuery
from annabelle.servers.memory.search.turn_index import TurnIndex, TurnNeighbours
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.query_parts import row_parameters, rows_by_id
from annabelle.store.memory.tables import facts


def round_score(value: float) -> float:
    """As it is shown: within 0 and 1, to four digits."""
    return round(min(max(value, 0.0), 1.0), 4)


VECTOR_CANDIDATES = 60
"""How many vectors meaning proposes; more of them changes the first ten in no set that was measured."""
TEXT_CANDIDATES = 100
UNRELATED = 0.1
"""A cosine below it means nothing by itself."""


@dataclass(frozen=True, slots=True)
class SearchCandidates:
    """Rows with their cosines (none while there are no vectors), and rows with how much of the words they hold."""

    tier: Tier
    cosines: Mapping[int, float] | None
    texts: Mapping[int, float]

    def with_cosines(self, cosines: Mapping[int, float]) -> SearchCandidates:
        """The same with the cosines of rows that only the words had proposed."""
        return replace(self, cosines={**cosines, **(self.cosines or {})})

    def text_score(self, row: int) -> float:
        """From 0 to 1: beside the row that holds most of the words."""
        best = max(self.texts.values(), default=0.0)
        return self.texts.get(row, 0.0) / best if best > 0 else 0.0

    def cosine(self, row: int) -> float:
        return 0.0 if self.cosines is None else self.cosines.get(row, 0.0)

    def is_related(self, row: int) -> bool:
        return row in self.texts or self.cosine(row) >= UNRELATED


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
class SearchWeights:
    """Shares of meaning and words in a score. What they add up to does not matter."""

    vector: float = 0.45
    text: float = 0.55

    def shares(self) -> tuple[float, float]:
        total = self.vector + self.text
        return (0.5, 0.5) if total <= 0 else (self.vector / total, self.text / total)


def fuse(cosines: Mapping[int, float] | None, texts: Mapping[int, float], weights: SearchWeights) -> dict[int, float]:
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


def neighbour_score(row: int, own: Mapping[int, float], standing: Mapping[int, TurnNeighbours]) -> float:
    """What the turns near this one add to its score. `standing` has every turn that scores, and those beside it."""
    total, here = 0.0, standing[row]
    place: TurnNeighbours | None = here
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


KnownFacts = dict[int, tuple[float, float]]
"""How sure a fact is, and when it was last said, in seconds since 1970."""

_known = select(facts.c.id, facts.c.confidence, facts.c.updated_at).where(
    rows_by_id(facts), facts.c.retired_at.is_(None)
)
_ids_in = select(facts.c.id).where(
    facts.c.user_id == bindparam("user_id"),
    facts.c.agent_id == bindparam("agent_id"),
    facts.c.category == bindparam("category"),
    facts.c.retired_at.is_(None),
)


def load_ids_in(connection: Connection, owner: Owner, category: FactCategory) -> set[int]:
    """The current facts of a category."""
    return set(connection.execute(_ids_in, {**owner.columns(), "category": category}).scalars())


def load_known(connection: Connection, owner: Owner, proposal: SearchCandidates, limit: int) -> KnownFacts:
    """What is kept of the best that each part proposes; the others cannot come first."""
    first = max(limit, 20)
    ids = {*list(proposal.texts)[:first], *list(proposal.cosines or ())[:first]}
    if not ids:
        return {}
    rows = connection.execute(_known, row_parameters(owner, ids))
    return {row: (confidence, updated_at.timestamp()) for row, confidence, updated_at in rows.fetchall()}


def rank_facts(
    proposal: SearchCandidates, known: KnownFacts, weights: SearchWeights, limit: int, at: float, *, fill: bool = False
) -> SearchHits:
    own = fuse(proposal.cosines, proposal.texts, weights)
    scores = {
        row: own.get(row, 0.0) + RECENCY * recency(said_at, at) + CONFIDENCE * confidence
        for row, (confidence, said_at) in known.items()
        if fill or proposal.is_related(row)
    }
    hits: list[MemoryHit] = []
    for row in nlargest(limit, scores, key=lambda row: (proposal.is_related(row), scores[row], row)):
        confidence, said_at = known[row]
        parts = ScoreParts(
            vector=round_score(proposal.cosine(row)),
            text=round_score(proposal.text_score(row)),
            recency=round_score(recency(said_at, at)),
            confidence=round_score(confidence),
        )
        hits.append(MemoryHit(row, round_score(scores[row] / (1 + RECENCY + CONFIDENCE)), parts))
    return SearchHits(proposal.tier, tuple(hits))


_BEST = 1 + sum(BEFORE) + sum(AFTER) + SPEAKER + DATE + RECENCY


def with_neighbours(proposal: SearchCandidates, turns: TurnIndex) -> dict[int, TurnNeighbours]:
    """What was proposed, and the turns that gain from standing beside it."""
    near: dict[int, TurnNeighbours] = {}
    for row in [*(proposal.cosines or ()), *proposal.texts]:
        _add(near, turns, row, "before", len(AFTER))
        _add(near, turns, row, "after", len(BEFORE))
    return near


def _add(
    near: dict[int, TurnNeighbours], turns: TurnIndex, row: int, side: Literal["before", "after"], steps: int
) -> None:
    """The row, and so many turns on one side of it."""
    for _ in range(steps + 1):
        place = near.get(row) or turns.get(row)
        if place is None:
            return
        near[row] = place
        row = place.before if side == "before" else place.after


@dataclass(frozen=True, slots=True)
class TurnQuery:
    """What is asked for, by whom it may have been said, and when it is asked."""

    query: SearchQuery
    named: frozenset[int]
    at: float

    def prior(self, place: TurnNeighbours) -> float:
        """What is known of a turn without its words."""
        total = RECENCY * self.recency(place)
        if self.named and place.speaker in self.named:
            total += SPEAKER
        if self.query.dates and self.on_a_day(place):
            total += DATE
        return total

    def recency(self, place: TurnNeighbours) -> float:
        return recency(place.said_at, self.at)

    def on_a_day(self, place: TurnNeighbours) -> bool:
        said_at = datetime.fromtimestamp(place.said_at, UTC)
        return any(said_at in date for date in self.query.dates)


def rank_turns(
    proposal: SearchCandidates,
    rows: Iterable[int],
    standing: Mapping[int, TurnNeighbours],
    asked: TurnQuery,
    weights: SearchWeights,
    limit: int,
) -> SearchHits:
    own = fuse(proposal.cosines, proposal.texts, weights)
    scores: dict[int, float] = {}
    context: dict[int, float] = {}
    for row in rows:
        context[row] = neighbour_score(row, own, standing)
        if context[row] or proposal.is_related(row):
            scores[row] = own.get(row, 0.0) + context[row] + asked.prior(standing[row])
    hits: list[MemoryHit] = []
    for row in nlargest(limit, scores, key=lambda row: (scores[row], row)):
        place = standing[row]
        parts = ScoreParts(
            vector=round_score(proposal.cosine(row)),
            text=round_score(proposal.text_score(row)),
            context=round_score(context[row]),
            speaker=float(place.speaker in asked.named),
            date=float(asked.on_a_day(place)),
            recency=round_score(asked.recency(place)),
        )
        hits.append(MemoryHit(row, round_score(scores[row] / _BEST), parts, place.before, place.after))
    return SearchHits(proposal.tier, tuple(hits))
