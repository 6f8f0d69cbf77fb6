"""Search in three tiers: by meaning and words, by words alone, and by substring (MEM-03)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from sqlalchemy import Connection

from annabelle.core.messages import now
from annabelle.core.trust import FactCategory
from annabelle.embeddings import Embedder, EmbeddingsUnavailable
from annabelle.servers.memory.search import scores
from annabelle.servers.memory.search.hits import SearchHits
from annabelle.servers.memory.search.query import choose_rare, parse_query
from annabelle.servers.memory.search.scores import (
    TEXT_CANDIDATES,
    UNRELATED,
    VECTOR_CANDIDATES,
    SearchCandidates,
    SearchWeights,
)
from annabelle.servers.memory.search.turn_index import TurnIndex
from annabelle.servers.memory.search.vectors import OwnerVectors, Vectors
from annabelle.store.database import Database
from annabelle.store.memory import conversations, text_index, vectors
from annabelle.store.memory.conversations import ConversationPosition
from annabelle.store.memory.owner import Owner, SearchKind

READ_AT_MOST = 1_500
"""Places of words that one search reads: past that a word is so common here that it tells little and costs much."""


def find_by_words(
    connection: Connection,
    kind: SearchKind,
    owner: Owner,
    words: Sequence[str],
    limit: int,
    among: set[int] | None = None,
) -> dict[int, float]:
    """Rows that hold the telling words, with their scores, best first."""
    chosen = choose_rare(text_index.count_terms(connection, kind, words), READ_AT_MOST, 1)
    if among is None:
        return dict(text_index.find_rows(connection, kind, owner, chosen, limit))
    # The index knows nothing of categories and days, so enough is asked for to find those that fit.
    found = text_index.find_rows(connection, kind, owner, chosen, limit * 20)
    return dict([hit for hit in found if hit[0] in among][:limit])


_NEARLY_THE_SAME = 0.8


class Search:
    """Everything that can be found, in memory as far as that is quicker. Used from one event loop.

    The vectors are compared before the words are looked up, not beside it: both at once would need a second visit to
    the database, which costs more than it saves.
    """

    def __init__(self, database: Database, embedder: Embedder, weights: SearchWeights | None = None) -> None:
        self._database, self._embedder, self._weights = database, embedder, weights or SearchWeights()
        self._matrices = OwnerVectors()
        self._turns: dict[Owner, TurnIndex] = {}
        self._model = ""
        self._loading = asyncio.Lock()
        self._meanwhile: list[Callable[[], None]] | None = None

    async def load(self) -> None:
        """Read every vector of the model in use, and where each turn stands. Again after an import or a restore."""
        async with self._loading:
            self._meanwhile = []
            try:
                self._matrices, self._turns, self._model = await self._load_index()
            finally:
                meanwhile, self._meanwhile = self._meanwhile, None
            for change in meanwhile:  # what was stored after the reading had begun
                change()

    async def _load_index(self) -> tuple[OwnerVectors, dict[Owner, TurnIndex], str]:
        model = str(self._embedder.model)

        def read_vectors_and_turns(connection: Connection) -> tuple[OwnerVectors, dict[Owner, TurnIndex]]:
            matrices, turns = OwnerVectors(), dict[Owner, TurnIndex]()
            for block in vectors.load_blocks(connection, model):
                matrices.put_block(block)
            for place in conversations.list_positions(connection):
                turns.setdefault(place.owner, TurnIndex()).add(place)
            return matrices, turns

        return (*await self._database.read(read_vectors_and_turns), model)

    def set_vectors(self, kind: SearchKind, owner: Owner, row_id: int, vector: Vectors) -> None:
        """Know the vector of a row, or one for each of its passages, from now on."""
        self._again_after_loading(lambda: self.set_vectors(kind, owner, row_id, vector))
        self._matrices.put(kind, owner, row_id, vector)

    def add_turn(self, place: ConversationPosition) -> None:
        """Know where a new turn stands."""
        self._again_after_loading(lambda: self.add_turn(place))
        self._turns.setdefault(place.owner, TurnIndex()).add(place)

    def drop(self, kind: SearchKind, owner: Owner, row_ids: Iterable[int]) -> None:
        """Find these rows no more."""
        gone = list(row_ids)
        self._again_after_loading(lambda: self.drop(kind, owner, gone))
        self._matrices.drop(kind, owner, gone)
        if kind == "conversation" and owner in self._turns:
            self._turns[owner].drop(gone)

    def _again_after_loading(self, change: Callable[[], None]) -> None:
        if self._meanwhile is not None:
            self._meanwhile.append(change)

    def find_similar_facts(
        self, owner: Owner, vector: Vectors, limit: int, least: float = 0.0
    ) -> list[tuple[int, float]]:
        """The facts closest in meaning to a vector, with their cosines of at least `least`, best first."""
        if least >= _NEARLY_THE_SAME:
            return list(self._matrices.alike("fact", owner, vector, least, limit).items())
        nearest = self._matrices.nearest("fact", owner, vector, limit)
        return [(row, cosine) for row, cosine in nearest.items() if cosine >= least]

    async def search_facts(
        self, owner: Owner, query: str, limit: int, *, category: FactCategory | None = None, fill: bool = False
    ) -> SearchHits:
        """Current facts that answer a question, best first; with `fill` then those that seem to have nothing to do
        with it, up to the limit. Packaged vectors know little of "home" and "lives in"; a model that reads both does.
        """
        asked, among = parse_query(query), None
        if category is not None:
            among = await self._database.read(lambda c: scores.load_ids_in(c, owner, category))
        vector, cosines = await self._find_nearest("fact", owner, asked.meaning, among)

        def read_candidates(connection: Connection) -> tuple[SearchCandidates, scores.KnownFacts]:
            proposal = _find_candidates(connection, "fact", owner, query, asked.words, cosines, among)
            if fill and cosines is not None and proposal.cosines is None:
                proposal = SearchCandidates("hybrid", cosines, proposal.texts)
            return proposal, scores.load_known(connection, owner, proposal, limit)

        proposal, known = await self._database.read(read_candidates)
        if vector is not None and proposal.cosines is not None:
            proposal = proposal.with_cosines(self._matrices.scores("fact", owner, vector, list(known)))
        return scores.rank_facts(proposal, known, self._weights, limit, now().timestamp(), fill=fill)

    async def search_conversations(
        self, owner: Owner, query: str, limit: int, *, since: datetime | None = None, until: datetime | None = None
    ) -> SearchHits:
        """Turns that answer a question, best first, said from `since` up to but without `until`."""
        turns = self._turns.get(owner) or TurnIndex()
        asked = parse_query(query, turns.named)
        among = None if since is None and until is None else set(turns.between(since, until))
        vector, cosines = await self._find_nearest("conversation", owner, asked.meaning, among)
        proposal = await self._database.read(
            lambda c: _find_candidates(c, "conversation", owner, query, asked.words, cosines, among)
        )
        near = scores.with_neighbours(proposal, turns)
        if vector is not None and proposal.cosines is not None:
            proposal = proposal.with_cosines(self._matrices.scores("conversation", owner, vector, list(near)))
        rows = near if among is None else [row for row in near if row in among]
        named = frozenset(number for name in asked.speakers for number in turns.named[name])
        return scores.rank_turns(
            proposal, rows, near, scores.TurnQuery(asked, named, now().timestamp()), self._weights, limit
        )

    async def _find_nearest(
        self, kind: SearchKind, owner: Owner, meaning: str, among: set[int] | None
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
        return vector, self._matrices.nearest(kind, owner, vector, VECTOR_CANDIDATES, among)


def _find_candidates(
    connection: Connection,
    kind: SearchKind,
    owner: Owner,
    query: str,
    words: tuple[str, ...],
    cosines: dict[int, float] | None,
    among: set[int] | None,
) -> SearchCandidates:
    texts = find_by_words(connection, kind, owner, words, TEXT_CANDIDATES, among)
    if texts:
        return SearchCandidates("text" if cosines is None else "hybrid", cosines, texts)
    # No word of it stands anywhere: a part of a word may.
    as_it_stands = text_index.find_substring(connection, kind, owner, query, VECTOR_CANDIDATES)
    whole = {row: 1.0 for row in as_it_stands if among is None or row in among}
    if cosines is not None and max(cosines.values(), default=0.0) >= UNRELATED:
        return SearchCandidates("hybrid", cosines, whole)
    return SearchCandidates("substring", None, whole)
