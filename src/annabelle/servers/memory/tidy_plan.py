"""Reads the facts to be tidied with their vectors, and asks the rules what might be done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import Connection, select

from annabelle.core.contract import TidyAction
from annabelle.core.memory import FactCategory
from annabelle.servers.memory.tidy_rules import propose
from annabelle.store.memory import facts, vectors
from annabelle.store.memory.facts import Fact
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import facts as table

if TYPE_CHECKING:
    from annabelle.servers.memory.library import Library


@dataclass(frozen=True, slots=True)
class Planned:
    """Facts and proposals."""

    facts: list[Fact]
    actions: list[TidyAction]


async def plan(library: Library, owner: Owner, categories: Sequence[FactCategory], most: int) -> Planned:
    """At most so many facts of each category, those that were renewed longest ago, and what the rules propose."""
    model = str(library.embedder.model)

    def read(connection: Connection) -> Planned:
        known: list[Fact] = []
        actions: list[TidyAction] = []
        for category in categories:
            found = _oldest(connection, owner, category, most)
            known += found
            blobs = vectors.get(connection, "fact", [fact.id for fact in found], model)
            meaning = {number: np.frombuffer(blob, np.float32) for number, blob in blobs.items()}

            def cosine(one: int, other: int, meaning: dict[int, np.ndarray] = meaning) -> float:
                return float(meaning[one] @ meaning[other]) if one in meaning and other in meaning else 0.0

            actions += propose(found, cosine)
        return Planned(known, actions)

    return await library.database.read(read)


def _oldest(connection: Connection, owner: Owner, category: FactCategory, most: int) -> list[Fact]:
    query = (
        select(table.c.id)
        .where(owner.of(table), table.c.category == category, table.c.retired_at.is_(None))
        .order_by(table.c.updated_at, table.c.id)
        .limit(most)
    )
    ids = list(connection.execute(query).scalars())
    found = facts.get(connection, owner, ids)
    return [found[number] for number in ids]
