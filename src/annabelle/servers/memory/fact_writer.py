"""Stores, corrects, deletes and restores facts, and decides which known facts a new one replaces (MEM-04)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from sqlalchemy import Connection

from annabelle.core.errors import Conflict, NotAllowed, NotFound
from annabelle.core.tools import JsonObject
from annabelle.servers.memory.search.query import choose_rare, keywords, overlap_share
from annabelle.servers.memory.search.vectors import to_array
from annabelle.servers.memory.statement import Statement, read_statement
from annabelle.store.memory import fact_history, facts, text_index
from annabelle.store.memory.facts import Fact, NewFact, fact_hash
from annabelle.store.memory.owner import Owner

if TYPE_CHECKING:
    from annabelle.servers.memory.open_memory import OpenMemory


SIMILAR_WORDS = 0.6
SIMILAR_MEANING = 0.92
UNSURE = 0.5
"""A fact less sure than this replaces none that is surer."""

_CANDIDATES = 16
_READ_AT_MOST = 400  # facts that say the same share their rare words
"""Places of words that are read to compare facts; those made of common words only are compared by meaning."""

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class StoreOutcome:
    """What became of a new fact and of the facts it affects."""

    fact: Fact
    status: Literal["stored", "known"]
    superseded: tuple[Fact, ...] = ()
    similar: tuple[Fact, ...] = ()
    not_replaced: tuple[Fact, ...] = ()
    """Facts it contradicts but did not replace, because they are trusted more."""


Decide = Callable[[Connection, NewFact, Sequence[int]], StoreOutcome]


async def store_fact(memory: OpenMemory, owner: Owner, new: NewFact, replaces: int | None = None) -> StoreOutcome:
    """Store a fact, with its vector if embeddings are available."""
    return await _store_with_vector(
        memory, owner, new, lambda c, whole, close: store_in_transaction(c, owner, whole, replaces, close)
    )


async def correct_fact(memory: OpenMemory, owner: Owner, fact_id: int, new: NewFact) -> StoreOutcome:
    """Replace a fact by a new wording. Untrusted content does not correct what the user said."""
    return await _store_with_vector(
        memory, owner, new, lambda c, whole, _: correct_in_transaction(c, owner, fact_id, whole)
    )


async def delete_fact(memory: OpenMemory, owner: Owner, fact_id: int, origin: JsonObject) -> tuple[bool, Fact]:
    """Retire a fact and tell whether it was current until now."""

    def retire(connection: Connection) -> tuple[bool, Fact]:
        facts.lock_facts(connection, owner)
        require_fact(connection, owner, fact_id)
        gone = facts.retire_facts(connection, owner, [fact_id], "deleted", origin=origin)
        return bool(gone), require_fact(connection, owner, fact_id)

    async def delete_and_unindex() -> tuple[bool, Fact]:
        deleted, fact = await memory.database.write(retire)
        memory.search.drop("fact", owner, [fact_id])
        return deleted, fact

    return await memory.uncancellable.run(delete_and_unindex())


async def _store_with_vector(memory: OpenMemory, owner: Owner, new: NewFact, decide: Decide) -> StoreOutcome:
    (vector,) = await memory.embed_facts([new.fact])
    whole = replace(new, vector=vector)
    close: list[int] = []
    if vector is not None:
        alike = memory.search.find_similar_facts(owner, to_array(vector), _SHOWN, SIMILAR_MEANING)
        close = [row for row, _ in alike]

    async def store_and_index() -> StoreOutcome:
        kept = await memory.database.write(lambda c: decide(c, whole, close))
        memory.search.drop("fact", owner, [fact.id for fact in kept.superseded])
        if kept.status == "stored":
            memory.index_vectors(owner, {kept.fact.id: vector})
        return kept

    return await memory.uncancellable.run(store_and_index())


def store_in_transaction(
    connection: Connection, owner: Owner, new: NewFact, replaces: int | None = None, close: Sequence[int] = ()
) -> StoreOutcome:
    """`store_fact` within a transaction. The caller updates the search index afterwards."""
    facts.lock_facts(connection, owner)
    named = None if replaces is None else require_fact(connection, owner, replaces)
    stated = read_statement(new.fact)
    contradicted = _find_contradicted(connection, owner, new, stated)
    if named is not None and named.current:
        contradicted[named.id] = named
    similar: list[Fact] = []
    known = facts.find_same_fact(connection, owner, new.fact)
    if known is not None:
        fact = facts.refresh_fact(connection, owner, known, new)
        contradicted.pop(fact.id, None)
    else:
        similar = _find_similar(connection, owner, new, close)  # before it is there itself
        fact = facts.add_fact(connection, owner, replace(new, about=stated.key if stated else None))
    replaced = [old for old in contradicted.values() if _may_replace(new, old)]
    return StoreOutcome(
        fact,
        "stored" if known is None else "known",
        _supersede(connection, owner, fact, replaced),
        tuple(old for old in similar if old.id not in contradicted),
        tuple(old for old in contradicted.values() if old not in replaced),
    )


def correct_in_transaction(connection: Connection, owner: Owner, fact_id: int, new: NewFact) -> StoreOutcome:
    """`correct_fact` within a transaction."""
    facts.lock_facts(connection, owner)
    old = require_fact(connection, owner, fact_id)
    if not old.current:
        after = facts.get_facts(connection, owner, [old.superseded_by or 0]).get(old.superseded_by or 0)
        if after is not None and after.current and after.fact == new.fact:
            return StoreOutcome(after, "known")  # the same correction once more
        raise Conflict(
            f"Fact {fact_id} is history already ({old.retired_because}).",
            hint="Correct the fact that took its place; explain_fact names it." if old.superseded_by else None,
        )
    if not _may_replace(new, old):
        raise NotAllowed(
            f"Fact {fact_id} is known from the user, and this correction comes from content others may have written. "
            "Nothing was changed.",
            hint="Ask the user to say it themselves.",
        )
    differs = (old.fact, old.category) != (new.fact, new.category)
    if differs and fact_hash(old.fact) == fact_hash(new.fact):  # only its spelling or its category is corrected
        contradicted = _find_contradicted(connection, owner, new, read_statement(new.fact))
        fact = facts.add_fact(connection, owner, replace(new, about=old.about))
        replaced = [old, *(one for one in contradicted.values() if one.id != old.id and _may_replace(new, one))]
        return StoreOutcome(fact, "stored", _supersede(connection, owner, fact, replaced))
    return store_in_transaction(connection, owner, new, fact_id)


def require_fact(connection: Connection, owner: Owner, fact_id: int) -> Fact:
    """A fact of this owner. Another owner's fact gives the same error as one that does not exist."""
    fact = facts.get_facts(connection, owner, [fact_id]).get(fact_id)
    if fact is None:
        raise NotFound(f"There is no fact {fact_id}.", hint="list_facts and retrieve_memories show the ids there are.")
    return fact


def _may_replace(new: NewFact, old: Fact) -> bool:
    return new.trust == "trusted" or old.trust == "untrusted"


def _find_contradicted(connection: Connection, owner: Owner, new: NewFact, stated: Statement | None) -> dict[int, Fact]:
    if stated is None:
        return {}
    found: dict[int, Fact] = {}
    for old in facts.list_current_about(connection, owner, stated.key):
        said = read_statement(old.fact)
        sure = new.confidence >= min(UNSURE, old.confidence)
        later = new.valid_from is None or new.valid_from >= old.valid_from
        if said is not None and stated.replaces(said) and sure and later:
            found[old.id] = old
    return found


def _supersede(connection: Connection, owner: Owner, fact: Fact, old: Sequence[Fact]) -> tuple[Fact, ...]:
    ids = [one.id for one in old if one.id != fact.id]
    gone = facts.retire_facts(connection, owner, ids, "superseded", by=fact.id, valid_until=fact.valid_from)
    known = facts.get_facts(connection, owner, gone)
    return tuple(known[number] for number in gone)


def _find_similar(connection: Connection, owner: Owner, new: NewFact, close: Sequence[int]) -> list[Fact]:
    """Current facts of the category with most of the same words, and those that mean nearly the same."""
    mine = keywords(new.fact)
    wanted = choose_rare(text_index.count_terms(connection, "fact", sorted(mine)), _READ_AT_MOST)
    by_words = [row for row, _ in text_index.find_rows(connection, "fact", owner, wanted, _CANDIDATES)]
    said = facts.get_wordings(connection, owner, [*close, *by_words])

    def is_alike(row: int) -> bool:
        fact, category = said[row]
        return row in close or (category == new.category and overlap_share(mine, keywords(fact)) >= SIMILAR_WORDS)

    alike = [row for row in dict.fromkeys([*close, *by_words]) if row in said and is_alike(row)][:_SHOWN]
    found = facts.get_facts(connection, owner, alike)
    return [found[row] for row in alike]


@dataclass(frozen=True, slots=True)
class FactRestoreOutcome:
    """The current fact, the facts retired for it, and whether anything changed."""

    fact: Fact
    retired: list[Fact]
    changed: bool


async def restore_fact(memory: OpenMemory, owner: Owner, fact_id: int, *, keep_successor: bool) -> FactRestoreOutcome:
    """Make a fact current again. One that is current already stays as it is."""
    known = await memory.database.read(lambda c: require_fact(c, owner, fact_id))
    embedded = {fact_id: (await memory.embed_facts([known.fact]))[0]}

    def restore_in_transaction(connection: Connection) -> FactRestoreOutcome:
        facts.lock_facts(connection, owner)
        old = require_fact(connection, owner, fact_id)
        if old.current:
            return FactRestoreOutcome(old, [], changed=False)
        twin = facts.find_same_fact(connection, owner, old.fact)
        if twin is not None:
            raise Conflict(f"The same is already known as fact {twin.id}.", hint="There is nothing to restore.")
        after = fact_history.read_fact_history(connection, owner, old).later
        (fact,) = facts.restore_facts(connection, owner, [fact_id], embedded)
        # A merged fact holds what the others said, too: it stays.
        gone: list[int] = []
        if not keep_successor and old.retired_because == "superseded":
            gone = [one.id for one in after if one.current]
        facts.retire_facts(connection, owner, gone, "superseded", by=fact_id)
        retired = facts.get_facts(connection, owner, gone)
        return FactRestoreOutcome(fact, [retired[number] for number in gone], changed=True)

    async def restore_and_index() -> FactRestoreOutcome:
        done = await memory.database.write(restore_in_transaction)
        memory.search.drop("fact", owner, [one.id for one in done.retired])
        if done.changed:
            memory.index_vectors(owner, embedded)
        return done

    return await memory.uncancellable.run(restore_and_index())
