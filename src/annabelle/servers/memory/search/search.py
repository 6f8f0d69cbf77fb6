"""Search in three tiers: by meaning and words, by words alone, and by the query as it stands (MEM-03)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from annabelle.core.memory import FactCategory
from annabelle.core.messages import now
from annabelle.embeddings import Embedder, EmbeddingsUnavailable
from annabelle.servers.memory.search import fusion
from annabelle.servers.memory.search.found import Found, Hit, Parts, Tier
from annabelle.servers.memory.search.fusion import Weights
from annabelle.servers.memory.search.matrices import Matrices
from annabelle.servers.memory.search.query import Query, parse
from annabelle.servers.memory.search.turns import Turns
from annabelle.servers.memory.search.words import look_up
from annabelle.store.database import Database
from annabelle.store.memory import conversations, text_index, vectors
from annabelle.store.memory.conversations import Place
from annabelle.store.memory.owner import Kind, Owner
from annabelle.store.memory.tables import facts

__all__ = ["Search", "Weights"]

CANDIDATES = 60
"""How many rows each part proposes; more of them changes the order of the first ten in no set that was measured."""
TEXT_SCORES = 200
UNRELATED = 0.1
"""A cosine below it means nothing by itself."""

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Proposed:
    """The rows that meaning and words propose, before anything else is known of them."""

    tier: Tier
    vector: Vector | None
    cosines: dict[int, float] | None
    texts: dict[int, float]


class Search:
    """Everything that can be found, in memory as far as that is quicker. Used from one event loop."""

    def __init__(self, database: Database, embedder: Embedder, weights: Weights | None = None) -> None:
        self._database, self._embedder, self._weights = database, embedder, weights or Weights()
        self._matrices = Matrices()
        self._turns: dict[Owner, Turns] = {}
        self._model = ""

    async def load(self) -> None:
        """Read every vector of the model in use, and where each turn stands. Again after an import or a restore."""
        model = str(self._embedder.model)

        def read(connection: Connection) -> tuple[Matrices, dict[Owner, Turns]]:
            matrices, turns = Matrices(), dict[Owner, Turns]()
            for block in vectors.load(connection, model):
                matrices.put_block(block)
            for place in conversations.places(connection):
                turns.setdefault(place.owner, Turns()).put(place)
            return matrices, turns

        self._matrices, self._turns = await self._database.read(read)
        self._model = model

    def put(self, kind: Kind, owner: Owner, row_id: int, vector: Vector) -> None:
        """Know the vector of a row, or one for each of its passages, from now on."""
        self._matrices.put(kind, owner, row_id, vector)

    def place(self, place: Place) -> None:
        """Know where a new turn stands."""
        self._turns.setdefault(place.owner, Turns()).put(place)

    def drop(self, kind: Kind, owner: Owner, row_ids: Iterable[int]) -> None:
        """Find these rows no more."""
        gone = list(row_ids)
        self._matrices.drop(kind, owner, gone)
        if kind == "conversation" and owner in self._turns:
            self._turns[owner].drop(gone)

    def similar(self, owner: Owner, vector: Vector, limit: int) -> list[tuple[int, float]]:
        """The facts closest in meaning to a vector, with their cosines, best first."""
        return list(self._matrices.nearest("fact", owner, vector, limit).items())

    async def facts(self, owner: Owner, query: str, limit: int, *, category: FactCategory | None = None) -> Found:
        """Current facts that answer a question, best first."""
        asked = parse(query)
        among = None
        if category is not None:
            among = await self._database.read(lambda c: _ids_in(c, owner, category))
        proposed = await self._propose("fact", owner, query, asked, among)
        cosines, texts = proposed.cosines, proposed.texts
        own = fusion.fuse(cosines, texts, self._weights)
        first = sorted(own, key=lambda row: (-own[row], -row))[: max(3 * limit, 30)]
        known = await self._database.read(lambda c: _current(c, owner, first)) if first else {}
        at, best_text = now(), max(texts.values(), default=0.0)
        hits: list[Hit] = []
        for row, (confidence, updated_at) in known.items():
            parts = Parts(
                vector=_part((cosines or {}).get(row, 0.0)),
                text=_part(texts.get(row, 0.0) / best_text if best_text else 0.0),
                recency=_part(fusion.recency(updated_at, at)),
                confidence=_part(confidence),
            )
            score = own[row] + fusion.RECENCY * parts.recency + fusion.CONFIDENCE * parts.confidence
            hits.append(Hit(row, score / (1 + fusion.RECENCY + fusion.CONFIDENCE), parts))
        return _found(proposed.tier, hits, limit)

    async def conversations(
        self, owner: Owner, query: str, limit: int, *, since: datetime | None = None, until: datetime | None = None
    ) -> Found:
        """Turns that answer a question, best first, said from `since` up to but without `until`."""
        turns = self._turns.get(owner) or Turns()
        asked = parse(query, turns.named)
        among = None if since is None and until is None else set(turns.between(since, until))
        proposed = await self._propose("conversation", owner, query, asked, among)
        cosines, texts = proposed.cosines, proposed.texts
        near = _with_neighbours(cosines or {}, texts, turns)
        if cosines is not None and proposed.vector is not None:
            cosines = self._matrices.scores("conversation", owner, proposed.vector, near)
        own = fusion.fuse(cosines, texts, self._weights)
        at, best_text = now(), max(texts.values(), default=0.0)
        named = {number for name in asked.speakers for number in turns.named[name]}
        hits: list[Hit] = []
        for row in near:
            if among is not None and row not in among:
                continue
            said_at = turns.said_at(row)
            parts = Parts(
                vector=_part((cosines or {}).get(row, 0.0)),
                text=_part(texts.get(row, 0.0) / best_text if best_text else 0.0),
                context=_part(fusion.around(row, own, turns)),
                speaker=float(turns.speaker(row) in named),
                date=float(said_at is not None and any(said_at in date for date in asked.dates)),
                recency=_part(fusion.recency(said_at, at)) if said_at else 0.0,
            )
            score = (
                own.get(row, 0.0)
                + parts.context
                + fusion.SPEAKER * parts.speaker
                + fusion.DATE * parts.date
                + fusion.RECENCY * parts.recency
            )
            hits.append(Hit(row, score / _BEST_TURN, parts))
        return _found(proposed.tier, hits, limit)

    async def _propose(
        self, kind: Kind, owner: Owner, query: str, asked: Query, among: Iterable[int] | None
    ) -> Proposed:
        """What meaning and words propose, side by side: the words are looked up while the vectors are compared."""
        allowed = None if among is None else set(among)
        looking = asyncio.ensure_future(
            self._database.read(lambda c: look_up(c, kind, owner, asked.words, TEXT_SCORES, allowed))
        )
        try:
            vector = await self._vector(asked.meaning)
            cosines = None
            if vector is not None and self._matrices.count(kind, owner):
                cosines = self._matrices.nearest(kind, owner, vector, CANDIDATES, allowed)
        finally:
            texts = await looking
        related = cosines is not None and max(cosines.values(), default=0.0) >= UNRELATED
        if texts:
            return Proposed("text" if cosines is None else "hybrid", vector, cosines, texts)
        # No word of it stands anywhere: a part of a word may, or writing that knows no words.
        as_it_stands = await self._database.read(lambda c: text_index.substring(c, kind, owner, query, CANDIDATES))
        whole = {row: 1.0 for row in as_it_stands if allowed is None or row in allowed}
        return Proposed("hybrid", vector, cosines, whole) if related else Proposed("substring", None, None, whole)

    async def _vector(self, text: str) -> Vector | None:
        try:
            vector = (await self._embedder.embed([text], query=True))[0]
        except EmbeddingsUnavailable:
            return None
        if str(self._embedder.model) != self._model:
            await self.load()  # a local server tells its model's name with the first answer only
        return vector


_BEST_TURN = 1 + sum(fusion.BEFORE) + sum(fusion.AFTER) + fusion.SPEAKER + fusion.DATE + fusion.RECENCY


def _with_neighbours(cosines: dict[int, float], texts: dict[int, float], turns: Turns) -> list[int]:
    first = sorted(texts, key=lambda row: -texts[row])[:CANDIDATES]
    near = dict.fromkeys([*cosines, *first])
    for row in list(near):
        for step, count in ((turns.before, len(fusion.AFTER)), (turns.after, len(fusion.BEFORE))):
            place = row
            for _ in range(count):
                if not (place := step(place)):
                    break
                near[place] = None
    return list(near)


def _found(tier: Tier, hits: list[Hit], limit: int) -> Found:
    wanted = [hit for hit in hits if hit.parts.text or hit.parts.context or hit.parts.vector >= UNRELATED]
    wanted.sort(key=lambda hit: (-hit.score, -hit.row_id))
    return Found(tier, tuple(replace(hit, score=_part(hit.score)) for hit in wanted[:limit]))


def _part(value: float) -> float:
    return round(min(max(value, 0.0), 1.0), 4)


def _ids_in(connection: Connection, owner: Owner, category: FactCategory) -> list[int]:
    query = select(facts.c.id).where(owner.of(facts), facts.c.category == category, facts.c.retired_at.is_(None))
    return list(connection.execute(query).scalars())


def _current(connection: Connection, owner: Owner, ids: Sequence[int]) -> dict[int, tuple[float, datetime]]:
    query = select(facts.c.id, facts.c.confidence, facts.c.updated_at).where(
        owner.of(facts), facts.c.id.in_(ids), facts.c.retired_at.is_(None)
    )
    return {row[0]: (row[1], row[2]) for row in connection.execute(query)}
