"""Orders facts: meaning and words decide, how recent and how sure they are settles ties."""

from __future__ import annotations

from heapq import nlargest

from sqlalchemy import Connection, bindparam, select

from annabelle.core.memory import FactCategory
from annabelle.servers.memory.search.found import Found, Hit, Parts, part
from annabelle.servers.memory.search.fusion import CONFIDENCE, RECENCY, Weights, fuse, recency
from annabelle.servers.memory.search.proposal import Proposal
from annabelle.store.memory.by_ids import named, naming
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import facts

Known = dict[int, tuple[float, float]]
"""How sure a fact is, and when it was last said, in seconds since 1970."""

_known = select(facts.c.id, facts.c.confidence, facts.c.updated_at).where(named(facts), facts.c.retired_at.is_(None))
_ids_in = select(facts.c.id).where(
    facts.c.user_id == bindparam("user_id"),
    facts.c.agent_id == bindparam("agent_id"),
    facts.c.category == bindparam("category"),
    facts.c.retired_at.is_(None),
)


def ids_in(connection: Connection, owner: Owner, category: FactCategory) -> set[int]:
    """The current facts of a category."""
    return set(connection.execute(_ids_in, {**owner.columns(), "category": category}).scalars())


def known(connection: Connection, owner: Owner, proposal: Proposal, limit: int) -> Known:
    """What is kept of the best that each part proposes; the others can not come first."""
    first = max(limit, 20)
    ids = {*list(proposal.texts)[:first], *list(proposal.cosines or ())[:first]}
    if not ids:
        return {}
    rows = connection.execute(_known, naming(owner, ids))
    return {row: (confidence, updated_at.timestamp()) for row, confidence, updated_at in rows.fetchall()}


def rank(proposal: Proposal, known: Known, weights: Weights, limit: int, at: float, *, fill: bool = False) -> Found:
    own = fuse(proposal.cosines, proposal.texts, weights)
    scores = {
        row: own.get(row, 0.0) + RECENCY * recency(said_at, at) + CONFIDENCE * confidence
        for row, (confidence, said_at) in known.items()
        if fill or proposal.is_related(row)
    }
    hits: list[Hit] = []
    for row in nlargest(limit, scores, key=lambda row: (proposal.is_related(row), scores[row], row)):
        confidence, said_at = known[row]
        parts = Parts(
            vector=part(proposal.cosine(row)),
            text=part(proposal.text(row)),
            recency=part(recency(said_at, at)),
            confidence=part(confidence),
        )
        hits.append(Hit(row, part(scores[row] / (1 + RECENCY + CONFIDENCE)), parts))
    return Found(proposal.tier, tuple(hits))
