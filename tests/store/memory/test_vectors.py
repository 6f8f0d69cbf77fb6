"""Vectors belong to a row, an owner and a model, and are never mixed."""

from __future__ import annotations

import struct

import pytest
from sqlalchemy import Connection, insert, update

from annabelle.core.messages import now
from annabelle.store.database import Database
from annabelle.store.memory import vectors
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import facts


def blob(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


def add_fact(connection: Connection, owner: Owner, fact: str) -> int:
    values = {
        **owner.columns(),
        "fact": fact,
        "fact_hash": fact,
        "category": "background",
        "source": "chat",
        "confidence": 1.0,
        "trust": "trusted",
        "origin": {},
        **dict.fromkeys(("valid_from", "created_at", "updated_at"), now()),
    }
    return connection.execute(insert(facts).values(values).returning(facts.c.id)).scalar_one()


@pytest.mark.req("EMB-01")
async def test_vectors_come_back_in_blocks_of_one_owner_kind_and_dimension(
    memory_db: Database, ada: Owner, bob: Owner
) -> None:
    def fill(connection: Connection) -> None:
        rows = [(ada, number, blob(number, 0)) for number in range(1, 6)]
        vectors.store_vectors(connection, "fact", "m/one", 2, rows)
        vectors.store_vector(connection, "conversation", ada, 1, "m/one", blob(7, 7), 2)
        vectors.store_vector(connection, "fact", bob, 9, "m/one", blob(9, 9), 2)
        vectors.store_vector(connection, "fact", bob, 10, "m/one", blob(1, 2, 3), 3)
        vectors.store_vector(connection, "fact", bob, 11, "m/other", blob(5, 5), 2)

    await memory_db.write(fill)
    blocks = await memory_db.read(lambda c: list(vectors.load_blocks(c, "m/one", rows=3)))
    assert max(len(block.row_ids) for block in blocks) <= 3
    found = {
        (block.kind, block.owner, block.dimension, row_id): block.data[4 * block.dimension * place :][
            : 4 * block.dimension
        ]
        for block in blocks
        for place, row_id in enumerate(block.row_ids)
    }
    assert found == {
        **{("fact", ada, 2, number): blob(number, 0) for number in range(1, 6)},
        ("conversation", ada, 2, 1): blob(7, 7),
        ("fact", bob, 2, 9): blob(9, 9),
        ("fact", bob, 3, 10): blob(1, 2, 3),
    }
    assert await memory_db.read(lambda c: vectors.count_vectors(c, "m/one")) == 8
    assert await memory_db.read(lambda c: vectors.count_vectors(c, "m/one", "fact", bob)) == 2


@pytest.mark.req("EMB-01")
async def test_a_row_has_one_vector_and_a_new_one_takes_its_place(memory_db: Database, ada: Owner) -> None:
    await memory_db.write(lambda c: vectors.store_vector(c, "fact", ada, 1, "m/one", blob(1, 0), 2))
    await memory_db.write(lambda c: vectors.store_vector(c, "fact", ada, 1, "m/two", blob(0, 1), 2))
    assert await memory_db.read(lambda c: list(vectors.load_blocks(c, "m/one"))) == []
    assert await memory_db.read(lambda c: vectors.get_vectors(c, "fact", [1, 2], "m/two")) == {1: blob(0, 1)}
    await memory_db.write(lambda c: vectors.remove_vectors(c, "fact", [1, 2]))
    assert await memory_db.read(lambda c: vectors.count_vectors(c, "m/two")) == 0


@pytest.mark.req("EMB-01")
async def test_what_lacks_a_vector_of_the_model_is_found_and_retired_facts_are_not(
    memory_db: Database, ada: Owner, bob: Owner
) -> None:
    def fill(connection: Connection) -> list[int]:
        ids = [add_fact(connection, ada, f"fact {number}") for number in range(4)]
        ids.append(add_fact(connection, bob, "of another"))
        vectors.store_vector(connection, "fact", ada, ids[0], "m/one", blob(1, 0), 2)
        vectors.store_vector(connection, "fact", ada, ids[1], "m/old", blob(1, 0), 2)
        connection.execute(update(facts).where(facts.c.id == ids[3]).values(retired_at=now()))
        return ids

    ids = await memory_db.write(fill)
    missing = await memory_db.read(lambda c: vectors.list_missing(c, "m/one", "fact"))
    assert missing == [(ids[1], ada), (ids[2], ada), (ids[4], bob)]
    assert await memory_db.read(lambda c: vectors.list_missing(c, "m/one", "fact", after=ids[1], limit=1)) == [
        (ids[2], ada)
    ]
    assert await memory_db.read(lambda c: vectors.list_missing(c, "m/one", "fact", owner=bob)) == [(ids[4], bob)]
    assert await memory_db.read(lambda c: vectors.count_missing(c, "m/one", "fact")) == 3
    assert await memory_db.read(lambda c: vectors.count_missing(c, "m/one", "fact", ada)) == 2
    assert await memory_db.read(lambda c: vectors.list_missing(c, "m/one", "conversation")) == []


async def test_the_vectors_of_a_rows_passages_stay_together_and_in_order(memory_db: Database, ada: Owner) -> None:
    def fill(connection: Connection) -> None:
        vectors.store_vector(connection, "conversation", ada, 1, "m/one", blob(1, 1, 2, 2, 3, 3), 2)
        vectors.store_vector(connection, "conversation", ada, 2, "m/one", blob(4, 4), 2)

    await memory_db.write(fill)
    (block,) = await memory_db.read(lambda c: list(vectors.load_blocks(c, "m/one")))
    assert (block.row_ids, block.data) == ([1, 1, 1, 2], blob(1, 1, 2, 2, 3, 3, 4, 4))
    assert await memory_db.read(lambda c: vectors.count_vectors(c, "m/one")) == 2


@pytest.mark.req("EMB-01")
async def test_a_vector_of_another_length_is_refused(memory_db: Database, ada: Owner) -> None:
    with pytest.raises(ValueError, match="3 dimensions"):
        await memory_db.write(lambda c: vectors.store_vector(c, "fact", ada, 1, "m/one", blob(1, 0), 3))
