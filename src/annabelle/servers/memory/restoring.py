"""Makes a retired fact current again, so that of those that contradict each other one stays current."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from annabelle.core.errors import Conflict
from annabelle.servers.memory.keeping import require_fact
from annabelle.store.memory import fact_sources, facts
from annabelle.store.memory.facts import Embedded, Fact
from annabelle.store.memory.owner import Owner

if TYPE_CHECKING:
    from annabelle.servers.memory.library import Library


@dataclass(frozen=True, slots=True)
class Restored:
    """A fact that is current, what is history instead of it, and whether it was history until now."""

    fact: Fact
    retired: list[Fact]
    changed: bool


async def restore(library: Library, owner: Owner, fact_id: int, *, keep_successor: bool) -> Restored:
    """Make a fact current again. One that is current already stays as it is."""
    known = await library.database.read(lambda c: require_fact(c, owner, fact_id))
    vector = await library.vector([known.fact])
    embedded: dict[int, Embedded] = {}
    if vector is not None:
        embedded[fact_id] = Embedded(str(library.embedder.model), vector.shape[1], vector[0].tobytes())

    def change(connection: Connection) -> Restored:
        facts.lock(connection, owner)
        old = require_fact(connection, owner, fact_id)
        if old.current:
            return Restored(old, [], changed=False)
        twin = facts.same(connection, owner, old.fact)
        if twin is not None:
            raise Conflict(f"The same is already known as fact {twin.id}.", hint="There is nothing to restore.")
        after = fact_sources.history(connection, owner, old).later
        (fact,) = facts.restore(connection, owner, [fact_id], embedded)
        # A merged fact holds what the others said, too: it stays.
        gone: list[int] = []
        if not keep_successor and old.retired_because == "superseded":
            gone = [one.id for one in after if one.current]
        facts.retire(connection, owner, gone, "superseded", by=fact_id)
        retired = facts.get(connection, owner, gone)
        return Restored(fact, [retired[number] for number in gone], changed=True)

    async def store() -> Restored:
        done = await library.database.write(change)
        library.search.drop("fact", owner, [one.id for one in done.retired])
        if done.changed and vector is not None:
            library.search.put("fact", owner, fact_id, vector[0])
        return done

    return await library.whole.do(store())
