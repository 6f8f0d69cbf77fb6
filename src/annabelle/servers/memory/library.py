"""The open memory: its database, who makes its vectors, and its search. Imported when the first call comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from annabelle.embeddings import Embedder, EmbeddingsUnavailable, make_embedder
from annabelle.embeddings.books import books_of_server
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.reembedding import Reembedding
from annabelle.servers.memory.search import Search, Weights
from annabelle.servers.memory.upkeep import Upkeep
from annabelle.servers.memory.whole import Whole
from annabelle.store.database import Database, sqlite_url
from annabelle.store.memory.schema import PLAN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Library:
    """Everything the tools work with. One process has one, and it is the only writer."""

    def __init__(self, config: MemoryConfig, database: Database, embedder: Embedder) -> None:
        self.config, self.database, self.embedder = config, database, embedder
        self.search = Search(database, embedder, Weights(config.vector_weight, config.text_weight))
        self.whole = Whole()
        self.reembedding = Reembedding(database, embedder, self.search.put, self.whole)
        self.upkeep = Upkeep(config, database, self.reembedding)

    @classmethod
    async def open(cls, config: MemoryConfig) -> Library:
        """Open the database and load what search needs. Raises StorageTrouble with the way back when it is damaged."""
        url = config.database_url or sqlite_url(config.file)
        database = await Database.open(url, synchronous=config.synchronous, backups=config.backups, plan=PLAN)
        try:
            books = books_of_server("memory", config.embedding)
            library = cls(config, database, make_embedder(config.embedding, config.embedding_cache, books))
            await library.search.load()
        except BaseException:
            await database.close()  # so that the next call can try again, and a backup can take its place
            raise
        library.upkeep.start()
        return library

    async def vector(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32] | None:
        """The vectors of texts, a row each; None while there are none to be had, which nothing else waits for."""
        try:
            return await self.embedder.embed(texts, query=query)
        except EmbeddingsUnavailable:
            return None

    async def close(self) -> None:
        await self.upkeep.stop()
        await self.whole.close()
        await self.embedder.close()
        await self.database.close()
