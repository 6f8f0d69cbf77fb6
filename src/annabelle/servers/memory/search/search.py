"""Search in three tiers: by meaning and words, by words alone, and by the query as it stands (MEM-03)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime

from sqlalchemy import Connection

from annabelle.core.memory import FactCategory
from annabelle.core.messages import now
from annabelle.embeddings import Embedder, EmbeddingsUnavailable
from annabelle.servers.memory.search import fact_ranking, turn_ranking
from annabelle.servers.memory.search.found import Found
from annabelle.servers.memory.search.fusion import Weights
from annabelle.servers.memory.search.matrices import Matrices, Vectors
from annabelle.servers.memory.search.proposal import CANDIDATES, TEXT_CANDIDATES, UNRELATED, Proposal
from annabelle.servers.memory.search.query import parse
from annabelle.servers.memory.search.turns import Turns
from annabelle.servers.memory.search.words import look_up
from annabelle.store.database import Database
from annabelle.store.memory import conversations, text_index, vectors
from annabelle.store.memory.conversations import Place
from annabelle.store.memory.owner import Kind, Owner

__all__ = ["Search", "Weights"]

_NEARLY_THE_SAME = 0.8


class Search:
    """Everything that can be found, in memory as far as that is quicker. Used from one event loop.

    The vectors are compared before the words are looked up, not beside it: both at once would need a second visit to
    the database, which costs more than it saves.
    """

    def __init__(self, database: Database, embedder: Embedder, weights: Weights | None = None) -> None:
        self._database, self._embedder, self._weights = database, embedder, weights or Weights()
        self._matrices = Matrices()
        self._turns: dict[Owner, Turns] = {}
        self._model = ""
        self._loading = asyncio.Lock()
        self._meanwhile: list[Callable[[], None]] | None = None

    async def load(self) -> None:
        """Read every vector of the model in use, and where each turn stands. Again after an import or a restore."""
        async with self._loading:
            self._meanwhile = []
            try:
                self._matrices, self._turns, self._model = await self._read()
            finally:
                meanwhile, self._meanwhile = self._meanwhile, None
            for change in meanwhile:  # what was stored after the reading had begun
                change()

    async def _read(self) -> tuple[Matrices, dict[Owner, Turns], str]:
        model = str(self._embedder.model)

        def read(connection: Connection) -> tuple[Matrices, dict[Owner, Turns]]:
            matrices, turns = Matrices(), dict[Owner, Turns]()
            for block in vectors.load(connection, model):
                matrices.put_block(block)
            for place in conversations.places(connection):
                turns.setdefault(place.owner, Turns()).put(place)
            return matrices, turns

        return (*await self._database.read(read), model)

    def put(self, kind: Kind, owner: Owner, row_id: int, vector: Vectors) -> None:
        """Know the vector of a row, or one for each of its passages, from now on."""
        self._again_after_loading(lambda: self.put(kind, owner, row_id, vector))
        self._matrices.put(kind, owner, row_id, vector)

    def place(self, place: Place) -> None:
        """Know where a new turn stands."""
        self._again_after_loading(lambda: self.place(place))
        self._turns.setdefault(place.owner, Turns()).put(place)

    def drop(self, kind: Kind, owner: Owner, row_ids: Iterable[int]) -> None:
        """Find these rows no more."""
        gone = list(row_ids)
        self._again_after_loading(lambda: self.drop(kind, owner, gone))
        self._matrices.drop(kind, owner, gone)
        if kind == "conversation" and owner in self._turns:
            self._turns[owner].drop(gone)

    def _again_after_loading(self, change: Callable[[], None]) -> None:
        if self._meanwhile is not None:
            self._meanwhile.append(change)

    def similar(self, owner: Owner, vector: Vectors, limit: int, least: float = 0.0) -> list[tuple[int, float]]:
        """The facts closest in meaning to a vector, with their cosines of at least `least`, best first."""
        if least >= _NEARLY_THE_SAME:
            return list(self._matrices.alike("fact", owner, vector, least, limit).items())
        nearest = self._matrices.nearest("fact", owner, vector, limit)
        return [(row, cosine) for row, cosine in nearest.items() if cosine >= least]

    async def facts(
        self, owner: Owner, query: str, limit: int, *, category: FactCategory | None = None, fill: bool = False
    ) -> Found:
        """Current facts that answer a question, best first; with `fill` then those that seem to have nothing to do
        with it, up to the limit. Packaged vectors know little of "home" and "lives in"; a model that reads both does.
        """
        asked, among = parse(query), None
        if category is not None:
            among = await self._database.read(lambda c: fact_ranking.ids_in(c, owner, category))
        vector, cosines = await self._nearest("fact", owner, asked.meaning, among)

        def read(connection: Connection) -> tuple[Proposal, fact_ranking.Known]:
            proposal = _propose(connection, "fact", owner, query, asked.words, cosines, among)
            if fill and cosines is not None and proposal.cosines is None:
                proposal = Proposal("hybrid", cosines, proposal.texts)
            return proposal, fact_ranking.known(connection, owner, proposal, limit)

        proposal, known = await self._database.read(read)
        if vector is not None and proposal.cosines is not None:
            proposal = proposal.with_cosines(self._matrices.scores("fact", owner, vector, list(known)))
        return fact_ranking.rank(proposal, known, self._weights, limit, now().timestamp(), fill=fill)

    async def conversations(
        self, owner: Owner, query: str, limit: int, *, since: datetime | None = None, until: datetime | None = None
    ) -> Found:
        """Turns that answer a question, best first, said from `since` up to but without `until`."""
        turns = self._turns.get(owner) or Turns()
        asked = parse(query, turns.named)
        among = None if since is None and until is None else set(turns.between(since, until))
        vector, cosines = await self._nearest("conversation", owner, asked.meaning, among)
        proposal = await self._database.read(
            lambda c: _propose(c, "conversation", owner, query, asked.words, cosines, among)
        )
        near = turn_ranking.with_neighbours(proposal, turns)
        if vector is not None and proposal.cosines is not None:
            proposal = proposal.with_cosines(self._matrices.scores("conversation", owner, vector, list(near)))
        rows = near if among is None else [row for row in near if row in among]
        named = frozenset(number for name in asked.speakers for number in turns.named[name])
        return turn_ranking.rank(
            proposal, rows, near, turn_ranking.Asked(asked, named, now().timestamp()), self._weights, limit
        )

    async def _nearest(
        self, kind: Kind, owner: Owner, meaning: str, among: set[int] | None
    ) -> tuple[Vectors | None, dict[int, float] | None]:
        """The meaning as a vector with the rows close to it; nothing of it while there are no vectors."""
        try:
            vector = (await self._embedder.embed([meaning], query=True))[0]
        except EmbeddingsUnavailable:
            return None, None
        if str(self._embedder.model) != self._model:
            await self.load()  # a local server tells its model's name with the first answer only
        if not self._matrices.count(kind, owner):
            return None, None
        return vector, self._matrices.nearest(kind, owner, vector, CANDIDATES, among)


def _propose(
    connection: Connection,
    kind: Kind,
    owner: Owner,
    query: str,
    words: tuple[str, ...],
    cosines: dict[int, float] | None,
    among: set[int] | None,
) -> Proposal:
    texts = look_up(connection, kind, owner, words, TEXT_CANDIDATES, among)
    if texts:
        return Proposal("text" if cosines is None else "hybrid", cosines, texts)
    # No word of it stands anywhere: a part of a word may.
    as_it_stands = text_index.substring(connection, kind, owner, query, CANDIDATES)
    whole = {row: 1.0 for row in as_it_stands if among is None or row in among}
    if cosines is not None and max(cosines.values(), default=0.0) >= UNRELATED:
        return Proposal("hybrid", cosines, whole)
    return Proposal("substring", None, whole)
