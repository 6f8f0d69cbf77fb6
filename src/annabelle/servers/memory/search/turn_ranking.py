"""Orders turns of conversations: meaning and words, what was said around them, by whom and when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from heapq import nlargest

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
from annabelle.servers.memory.search.turns import Turns

_BEST = 1 + sum(BEFORE) + sum(AFTER) + SPEAKER + DATE + RECENCY


def with_neighbours(proposal: Proposal, turns: Turns) -> list[int]:
    """What was proposed, and the turns that gain from standing beside it."""
    near = dict.fromkeys([*(proposal.cosines or ()), *proposal.texts])
    for row in list(near):
        for step, count in ((turns.before, len(AFTER)), (turns.after, len(BEFORE))):
            place = row
            for _ in range(count):
                if not (place := step(place)):
                    break
                near[place] = None
    return list(near)


def rank(
    proposal: Proposal, rows: Sequence[int], turns: Turns, asked: Query, weights: Weights, limit: int, at: datetime
) -> Found:
    own = fuse(proposal.cosines, proposal.texts, weights)
    named = {number for name in asked.speakers for number in turns.named[name]}
    scores: dict[int, float] = {}
    context: dict[int, float] = {}
    for row in rows:
        context[row] = around(row, own, turns)
        if context[row] or proposal.is_related(row):
            scores[row] = own.get(row, 0.0) + context[row] + _told(row, turns, asked, named, at)
    hits: list[Hit] = []
    for row in nlargest(limit, scores, key=lambda row: (scores[row], row)):
        said_at = turns.said_at(row)
        parts = Parts(
            vector=part(proposal.cosine(row)),
            text=part(proposal.text(row)),
            context=part(context[row]),
            speaker=float(turns.speaker(row) in named),
            date=float(said_at is not None and _on_a_day(said_at, asked)),
            recency=part(recency(said_at, at)) if said_at else 0.0,
        )
        hits.append(Hit(row, part(scores[row] / _BEST), parts))
    return Found(proposal.tier, tuple(hits))


def _told(row: int, turns: Turns, asked: Query, named: set[int], at: datetime) -> float:
    """What is known of a turn without its words."""
    total = SPEAKER if named and turns.speaker(row) in named else 0.0
    said_at = turns.said_at(row)
    if said_at is not None:
        total += RECENCY * recency(said_at, at)
        if asked.dates and _on_a_day(said_at, asked):
            total += DATE
    return total


def _on_a_day(said_at: datetime, asked: Query) -> bool:
    return any(said_at in date for date in asked.dates)
