"""The parts of the memory server that are measured, without the protocol around them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from annabelle.core.home import Home
from annabelle.embeddings import EmbeddingConfig, make_embedder
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.fact_writer import store_fact
from annabelle.servers.memory.open_memory import OpenMemory
from annabelle.servers.memory.search.hits import SearchHits
from annabelle.store.memory import facts
from annabelle.store.memory.facts import FactVector, NewFact
from annabelle.store.memory.owner import Owner

OWNER = Owner("owner", "annabelle")
BATCH = 1000


async def opened(folder: Path) -> OpenMemory:
    home = Home(folder)
    return await OpenMemory.open(
        MemoryConfig(
            file=home.memory_file,
            backups=home.backups,
            export_folder=home.memory_export,
            workspace=home.workspace,
            embedding_cache=home.embedding_cache,
            embedding=EmbeddingConfig(),
            backup_hours=0,
        )
    )


async def fill(folder: Path, texts: list[str], vectors: Path) -> None:
    """Store all facts with their vectors, which are kept for the others to compare with."""
    library = await opened(folder)
    made = await embedded(texts)
    np.save(vectors, made)
    model, dimension = str(library.embedder.model), made.shape[1]
    for start in range(0, len(texts), BATCH):
        rows = [
            NewFact(text, "background", vector=FactVector(model, dimension, made[start + n].tobytes()))
            for n, text in enumerate(texts[start : start + BATCH])
        ]
        await library.database.write(lambda c, rows=rows: [facts.add_fact(c, OWNER, row) for row in rows])
    await library.close()


async def embedded(texts: list[str]) -> NDArray[np.float32]:
    return await make_embedder(EmbeddingConfig(), None).embed(texts)


async def search(library: OpenMemory, question: str) -> SearchHits:
    return await library.search.search_facts(OWNER, question, 10)


async def insert(library: OpenMemory, text: str) -> None:
    """As store_fact does it: compared with what is known, indexed, committed."""
    await store_fact(library, OWNER, NewFact(text, "background"))
