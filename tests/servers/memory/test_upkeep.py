"""Another model means new vectors: made in the background, a batch at a time, while search goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import insert, select, update

from annabelle.core.messages import now
from annabelle.embeddings import EmbeddingConfig, EmbeddingsUnavailable, ModelName
from annabelle.servers.memory import open_memory as library_module, upkeep as upkeep_module
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.open_memory import OpenMemory
from annabelle.store.memory import conversations, text_index, vectors
from annabelle.store.memory.conversations import NewTurn
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import facts, vectors as vectors_table
from servers.memory.memories import MakeMemory, Memory
from support.timing import seconds

ADA, BOB = Owner("owner", "annabelle"), Owner("bob", "annabelle")


class Letters:
    """A model that counts letters: as many dimensions as it is told, and down when it is told so."""

    def __init__(self, name: str, dimension: int = 26) -> None:
        self.model = ModelName("test", name)
        self.dimension, self.asked, self.failures_left = dimension, 0, 0
        self.waiting = asyncio.Event()
        self.gate: asyncio.Event | None = None

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        if self.failures_left:
            self.failures_left -= 1
            raise EmbeddingsUnavailable("The model is down.", hint="Start it.")
        if self.gate is not None and not query:
            self.waiting.set()
            await self.gate.wait()
        self.asked += len(texts)
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for letter in text.lower():
                if "a" <= letter <= "z":
                    row[(ord(letter) - 97) % self.dimension] += 1
            row /= max(float(np.linalg.norm(row)), 1e-9)
        return rows

    async def close(self) -> None: ...


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[Letters], Letters]:
    """Have memories that are opened from now on use this model."""

    def choose(model: Letters) -> Letters:
        def make(config: EmbeddingConfig, folder: Path | None, books: object) -> Letters:
            return model

        monkeypatch.setattr(library_module, "make_embedder", make)
        return model

    return choose


async def add_facts(library: OpenMemory, owner: Owner, *texts: str) -> list[int]:
    """Rows as they are while no model is to be had: with their words indexed and without a vector."""
    same = {"category": "background", "source": "chat", "confidence": 1.0, "trust": "trusted", "origin": {}}
    times = dict.fromkeys(("valid_from", "created_at", "updated_at"), now())

    def add(connection) -> list[int]:  # type: ignore[no-untyped-def]
        ids = []
        for text in texts:
            row = {**owner.columns(), **same, **times, "fact": text, "fact_hash": text}
            ids.append(connection.execute(insert(facts).values(row).returning(facts.c.id)).scalar_one())
            text_index.index_row(connection, "fact", owner, ids[-1], text)
        return ids

    return await library.database.write(add)


async def models(library: OpenMemory) -> set[tuple[str, int]]:
    query = select(vectors_table.c.model, vectors_table.c.dimension).distinct()
    return await library.database.read(lambda c: {(row[0], row[1]) for row in c.execute(query)})


@pytest.mark.req("EMB-01")
async def test_after_a_change_of_model_everything_gets_a_new_vector_in_the_background(
    open_memory: MakeMemory, config: MemoryConfig, use: Callable[[Letters], Letters], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_module, "BATCH", 7)
    use(Letters("old"))
    memory = open_memory(config)
    library = await memory.library()
    ids = await add_facts(library, ADA, *(f"fact number {number}" for number in range(20)), "Ada likes green tea")
    await add_facts(library, BOB, "Bob likes coffee")
    turn = NewTurn("thr_1", "Where is the tea?", "In the kitchen.", now())
    await library.database.write(lambda c: conversations.add_turn(c, ADA, turn))
    while await library.reembedding.embed_batch(5):
        pass
    assert await models(library) == {("test/old", 26)}
    await memory.close()

    new = use(Letters("new", 13))
    new.gate = asyncio.Event()
    again = open_memory(config)
    library = await again.library()
    found = await library.search.search_facts(ADA, "green tea", 3)
    assert found.tier == "text", "the old vectors are not compared with the new model's"
    assert found.hits[0].row_id == ids[-1], "and search works meanwhile"
    assert await library.reembedding.count_missing() == 23
    new.gate.set()
    await asyncio.wait_for(library.upkeep.wait_until_done(), seconds(20))
    assert await library.reembedding.count_missing() == 0
    assert await models(library) == {("test/new", 13)}
    found = await library.search.search_facts(ADA, "green tea", 3)
    assert (found.tier, found.hits[0].row_id) == ("hybrid", ids[-1]), "what is new is found without a restart"
    await again.close()

    asked = new.asked
    third = open_memory(config)
    library = await third.library()
    await asyncio.wait_for(library.upkeep.wait_until_done(), seconds(20))
    assert new.asked == asked, "nothing is done twice"
    assert (await library.search.search_facts(ADA, "green tea", 3)).tier == "hybrid"


@pytest.mark.req("EMB-01")
async def test_what_was_stored_while_the_model_was_down_is_caught_up_with_later(
    open_memory: MakeMemory, config: MemoryConfig, use: Callable[[Letters], Letters], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_module, "BATCH", 2)
    model = use(Letters("one"))
    library = await open_memory(config).library()
    await asyncio.wait_for(library.upkeep.wait_until_done(), seconds(20))
    await add_facts(library, ADA, "one", "two", "three", "four", "five")
    model.failures_left = 1
    library.upkeep.run_now()
    await asyncio.wait_for(library.upkeep.wait_until_done(), seconds(20))
    assert await library.reembedding.count_missing() == 5, "it was down, and nothing else minded"
    library.upkeep.run_now()
    await asyncio.wait_for(library.upkeep.wait_until_done(), seconds(20))
    assert await library.reembedding.count_missing() == 0


@pytest.mark.req("EMB-01", "MEM-02")
async def test_the_backfill_does_one_batch_of_its_callers_rows_and_says_what_is_left(
    open_memory: MakeMemory, config: MemoryConfig, use: Callable[[Letters], Letters]
) -> None:
    model = use(Letters("one"))
    memory: Memory = open_memory(config)
    library = await memory.library()
    await asyncio.wait_for(library.upkeep.wait_until_done(), seconds(20))
    await add_facts(library, ADA, "one", "two", "three")
    await add_facts(library, BOB, "of bob")
    call = memory.as_()
    model.failures_left = 1
    with pytest.raises(EmbeddingsUnavailable, match="down"):
        await call("backfill_embeddings")
    first = await call("backfill_embeddings", batch_size=2)
    assert (first.done, first.remaining, first.total, first.model) == (2, 1, 3, "test/one")
    second = await call("backfill_embeddings")
    assert (second.done, second.remaining, second.total) == (1, 0, 3)
    assert await library.reembedding.count_missing(BOB) == 1, "not another's"
    by_person = await memory.as_person("bob")("backfill_embeddings")
    assert (by_person.done, by_person.remaining) == (1, 0)


async def test_a_row_that_changed_while_its_vector_was_made_keeps_none_of_the_old_text(
    open_memory: MakeMemory, config: MemoryConfig, use: Callable[[Letters], Letters]
) -> None:
    model = use(Letters("one"))
    library = await open_memory(config).library()
    await asyncio.wait_for(library.upkeep.wait_until_done(), seconds(20))
    changed, retired, same = await add_facts(library, ADA, "changed", "retired", "same")
    model.gate = asyncio.Event()
    batch = asyncio.create_task(library.reembedding.embed_batch(10))
    await asyncio.wait_for(model.waiting.wait(), seconds(20))
    change = update(facts).where(facts.c.id == changed).values(fact="other words")
    retire = update(facts).where(facts.c.id == retired).values(retired_at=now())
    await library.database.write(lambda c: (c.execute(change), c.execute(retire)))
    model.gate.set()
    await batch
    kept = await library.database.read(lambda c: vectors.get_vectors(c, "fact", [changed, retired, same], "test/one"))
    assert set(kept) == {same}
    assert await library.reembedding.embed_batch(10) == 1


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
async def test_the_upkeep_ends_also_when_it_was_woken_the_moment_before(memory: Memory) -> None:
    upkeep = (await memory.library()).upkeep
    for steps in range(5):
        await asyncio.wait_for(upkeep.wait_until_done(), seconds(30))
        upkeep.run_now()
        for _ in range(steps):
            await asyncio.sleep(0)
        await asyncio.wait_for(upkeep.stop(), seconds(30))
        upkeep.start()
