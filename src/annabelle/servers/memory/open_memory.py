"""The open memory: its database, embedder and search. Loaded on the first call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from annabelle.embeddings import Embedder, EmbeddingsUnavailable, make_embedder
from annabelle.embeddings.metering import make_server_meter
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.search.scores import SearchWeights
from annabelle.servers.memory.search.search import Search
from annabelle.servers.memory.search.vectors import to_array
from annabelle.servers.memory.upkeep import MemoryUpkeep
from annabelle.servers.memory.vector_backfill import Uncancellable, VectorBackfill
from annabelle.store.database import Database, sqlite_url
from annabelle.store.memory import conversations, vectors
from annabelle.store.memory.conversations import NewTurn, StoredTurn
from annabelle.store.memory.facts import FactVector
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import MEMORY_PLAN
from annabelle.store.memory.vectors import split_passages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class OpenMemory:
    """Everything the tools work with. There is one per process, and it is the only writer."""

    def __init__(self, config: MemoryConfig, database: Database, embedder: Embedder) -> None:
        self.config, self.database, self.embedder = config, database, embedder
        self.search = Search(database, embedder, SearchWeights(config.vector_weight, config.text_weight))
        self.uncancellable = Uncancellable()
        self.reembedding = VectorBackfill(database, embedder, self.search.set_vectors, self.uncancellable)
        self.upkeep = MemoryUpkeep(config, database, self.reembedding)

    @classmethod
    async def open(cls, config: MemoryConfig) -> OpenMemory:
        """Open the database and load what search needs. Raises StorageTrouble with the way back when it is damaged."""
        url = config.database_url or sqlite_url(config.file)
        database = await Database.open(url, synchronous=config.synchronous, backups=config.backups, plan=MEMORY_PLAN)
        try:
            meter = make_server_meter("memory", config.embedding)
            memory = cls(config, database, make_embedder(config.embedding, config.embedding_cache, meter))
            await memory.search.load()
        except BaseException:
            await database.close()  # so that the next call can try again, and a backup can take its place
            raise
        memory.upkeep.start()
        return memory

    async def embed_or_none(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32] | None:
        """The vectors of texts, one row each; None while embeddings are unavailable."""
        try:
            return await self.embedder.embed(texts, query=query)
        except EmbeddingsUnavailable:
            return None

    async def embed_facts(self, facts: Sequence[str]) -> list[FactVector | None]:
        """The vector of each fact; None while embeddings are unavailable."""
        made = await self.embed_or_none(facts) if facts else None
        if made is None:
            return [None] * len(facts)
        return [FactVector(str(self.embedder.model), made.shape[1], row.tobytes()) for row in made]

    def index_vectors(self, owner: Owner, embedded: Mapping[int, FactVector | None]) -> None:
        """Let search find facts by meaning, once they are stored. Missing vectors are added later."""
        for fact_id, vector in embedded.items():
            if vector is not None:
                self.search.set_vectors("fact", owner, fact_id, to_array(vector))

    async def close(self) -> None:
        await self.upkeep.stop()
        await self.uncancellable.close()
        await self.embedder.close()
        await self.database.close()


async def store_turn(memory: OpenMemory, owner: Owner, new: NewTurn) -> tuple[StoredTurn, bool]:
    """Store a turn and tell whether it is new. Missing vectors are added later."""
    made = await memory.embed_or_none(split_passages("conversation", new.search_text()))
    model = str(memory.embedder.model)

    def add_turn(connection: Connection) -> tuple[StoredTurn, bool]:
        turn, is_new = conversations.add_turn(connection, owner, new)
        if is_new and made is not None:
            data = made.astype("<f4").tobytes()
            vectors.store_vector(connection, "conversation", owner, turn.id, model, data, made.shape[1])
        return turn, is_new

    async def store_and_index() -> tuple[StoredTurn, bool]:
        turn, is_new = await memory.database.write(add_turn)
        if is_new:
            memory.search.add_turn(turn.position(owner))
            if made is not None:
                memory.search.set_vectors("conversation", owner, turn.id, made)
        return turn, is_new

    return await memory.uncancellable.run(store_and_index())
