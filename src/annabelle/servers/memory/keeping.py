"""Decides what a new fact means for those that are known: the same again, a correction, or one beside them (MEM-04)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from sqlalchemy import Connection

from annabelle.core.errors import Conflict, NotAllowed, NotFound
from annabelle.core.tools import JsonObject
from annabelle.servers.memory.keywords import keywords, overlap
from annabelle.servers.memory.statement import Statement, read_statement
from annabelle.store.memory import facts, text_index
from annabelle.store.memory.facts import Embedded, Fact, NewFact, fact_hash
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.text_index import Term

if TYPE_CHECKING:
    from annabelle.servers.memory.library import Library

SIMILAR_WORDS = 0.6
SIMILAR_MEANING = 0.92
UNSURE = 0.5
"""A fact less sure than this replaces none that is surer."""

_CANDIDATES = 16
_READ_AT_MOST = 400  # facts that say the same share their rare words
"""Places of words that are read to compare facts; those made of common words only are compared by meaning."""

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of a fact, and of those it touches."""

    fact: Fact
    status: Literal["stored", "known"]
    superseded: tuple[Fact, ...] = ()
    similar: tuple[Fact, ...] = ()
    withstood: tuple[Fact, ...] = ()
    """Facts it contradicts and did not replace, because less is to be trusted in it than in them."""


Decide = Callable[[Connection, NewFact, Sequence[int]], Kept]


async def keep(library: Library, owner: Owner, new: NewFact, replaces: int | None = None) -> Kept:
    """Keep one fact, with its vector where there is one to be had."""
    return await _store(library, owner, new, lambda c, whole, close: keep_in(c, owner, whole, replaces, close))


async def correct(library: Library, owner: Owner, fact_id: int, new: NewFact) -> Kept:
    """Put a new wording in the place of one fact. What others wrote does not correct what the user said."""
    return await _store(library, owner, new, lambda c, whole, _: correct_in(c, owner, fact_id, whole))


async def delete(library: Library, owner: Owner, fact_id: int, origin: JsonObject) -> tuple[bool, Fact]:
    """Make a fact history, and whether it was current until now."""

    def retire(connection: Connection) -> tuple[bool, Fact]:
        facts.lock(connection, owner)
        require_fact(connection, owner, fact_id)
        gone = facts.retire(connection, owner, [fact_id], "deleted", origin=origin)
        return bool(gone), require_fact(connection, owner, fact_id)

    async def store() -> tuple[bool, Fact]:
        deleted, fact = await library.database.write(retire)
        library.search.drop("fact", owner, [fact_id])
        return deleted, fact

    return await library.whole.do(store())


async def _store(library: Library, owner: Owner, new: NewFact, decide: Decide) -> Kept:
    vector = await library.vector([new.fact])
    close: list[int] = []
    if vector is not None:
        new = replace(new, vector=Embedded(str(library.embedder.model), vector.shape[1], vector[0].tobytes()))
        close = [row for row, _ in library.search.similar(owner, vector[0], _SHOWN, SIMILAR_MEANING)]

    async def store() -> Kept:
        kept = await library.database.write(lambda c: decide(c, new, close))
        library.search.drop("fact", owner, [fact.id for fact in kept.superseded])
        if vector is not None and kept.status == "stored":
            library.search.put("fact", owner, kept.fact.id, vector[0])
        return kept

    return await library.whole.do(store())


def keep_in(
    connection: Connection, owner: Owner, new: NewFact, replaces: int | None = None, close: Sequence[int] = ()
) -> Kept:
    """The same within a transaction; whoever calls it tells the search afterwards."""
    facts.lock(connection, owner)
    named = None if replaces is None else require_fact(connection, owner, replaces)
    stated = read_statement(new.fact)
    contradicted = _contradicted(connection, owner, new, stated)
    if named is not None and named.current:
        contradicted[named.id] = named
    similar: list[Fact] = []
    known = facts.same(connection, owner, new.fact)
    if known is not None:
        fact = facts.refresh(connection, owner, known, new)
        contradicted.pop(fact.id, None)
    else:
        similar = _similar(connection, owner, new, close)  # before it is there itself
        fact = facts.add(connection, owner, replace(new, about=stated.key if stated else None))
    replaced = [old for old in contradicted.values() if _may_replace(new, old)]
    return Kept(
        fact,
        "stored" if known is None else "known",
        _supersede(connection, owner, fact, replaced),
        tuple(old for old in similar if old.id not in contradicted),
        tuple(old for old in contradicted.values() if old not in replaced),
    )


def correct_in(connection: Connection, owner: Owner, fact_id: int, new: NewFact) -> Kept:
    """The same as `correct`, within a transaction."""
    facts.lock(connection, owner)
    old = require_fact(connection, owner, fact_id)
    if not old.current:
        after = facts.get(connection, owner, [old.superseded_by or 0]).get(old.superseded_by or 0)
        if after is not None and after.current and after.fact == new.fact:
            return Kept(after, "known")  # the same correction once more
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
        contradicted = _contradicted(connection, owner, new, read_statement(new.fact))
        fact = facts.add(connection, owner, replace(new, about=old.about))
        replaced = [old, *(one for one in contradicted.values() if one.id != old.id and _may_replace(new, one))]
        return Kept(fact, "stored", _supersede(connection, owner, fact, replaced))
    return keep_in(connection, owner, new, fact_id)


def require_fact(connection: Connection, owner: Owner, fact_id: int) -> Fact:
    """A fact of this owner. Somebody else's is missing in the same words as one that never was."""
    fact = facts.get(connection, owner, [fact_id]).get(fact_id)
    if fact is None:
        raise NotFound(f"There is no fact {fact_id}.", hint="list_facts and retrieve_memories show the ids there are.")
    return fact


def _may_replace(new: NewFact, old: Fact) -> bool:
    return new.trust == "trusted" or old.trust == "untrusted"


def _contradicted(connection: Connection, owner: Owner, new: NewFact, stated: Statement | None) -> dict[int, Fact]:
    if stated is None:
        return {}
    found: dict[int, Fact] = {}
    for old in facts.current_about(connection, owner, stated.key):
        said = read_statement(old.fact)
        sure = new.confidence >= min(UNSURE, old.confidence)
        later = new.valid_from is None or new.valid_from >= old.valid_from
        if said is not None and stated.replaces(said) and sure and later:
            found[old.id] = old
    return found


def _supersede(connection: Connection, owner: Owner, fact: Fact, old: Sequence[Fact]) -> tuple[Fact, ...]:
    ids = [one.id for one in old if one.id != fact.id]
    gone = facts.retire(connection, owner, ids, "superseded", by=fact.id, valid_until=fact.valid_from)
    known = facts.get(connection, owner, gone)
    return tuple(known[number] for number in gone)


def _similar(connection: Connection, owner: Owner, new: NewFact, close: Sequence[int]) -> list[Fact]:
    """Current facts of the category with most of the same words, and those that mean nearly the same."""
    mine = keywords(new.fact)
    wanted = _rare(text_index.terms(connection, "fact", sorted(mine)))
    by_words = [row for row, _ in text_index.find(connection, "fact", owner, wanted, _CANDIDATES)]
    said = facts.wordings(connection, owner, [*close, *by_words])

    def is_alike(row: int) -> bool:
        fact, category = said[row]
        return row in close or (category == new.category and overlap(mine, keywords(fact)) >= SIMILAR_WORDS)

    alike = [row for row in dict.fromkeys([*close, *by_words]) if row in said and is_alike(row)][:_SHOWN]
    found = facts.get(connection, owner, alike)
    return [found[row] for row in alike]


def _rare(terms: Sequence[Term]) -> list[Term]:
    chosen: list[Term] = []
    total = 0
    for term in sorted((term for term in terms if term.frequency), key=lambda term: term.frequency):
        total += term.frequency
        if total > _READ_AT_MOST:
            break
        chosen.append(term)
    return chosen
