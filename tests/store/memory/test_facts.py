"""Facts are kept with their history, and nobody finds another's."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from sqlalchemy import func, select, update

from annabelle.store.database import Database
from annabelle.store.memory import fact_history, facts, text_index, vectors
from annabelle.store.memory.fact_history import FactChangePart
from annabelle.store.memory.facts import Fact, FactVector, NewFact, fact_hash
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import changes, facts as table

VECTOR = FactVector("test/model", 2, b"\x00" * 8)


def _words(connection, owner: Owner, query: str) -> list[int]:
    return [
        row
        for row, _ in text_index.find_rows(
            connection, "fact", owner, text_index.count_terms(connection, "fact", query), 10
        )
    ]


@pytest.fixture
def add(memory_db: Database, ada: Owner):
    async def do(fact: str = "Likes green tea", owner: Owner = ada, **values: object) -> Fact:
        new = NewFact(fact, **{"category": "preference", **values})
        return await memory_db.write(lambda c: facts.add_fact(c, owner, new))

    return do


@pytest.mark.req("MEM-06", "MEM-09")
async def test_a_fact_keeps_category_confidence_source_trust_and_origin(memory_db: Database, ada: Owner, add) -> None:
    since = datetime(2026, 5, 1, tzinfo=UTC)
    stored = await add(
        category="decision",
        confidence=0.8,
        source="chat",
        trust="untrusted",
        origin={"kind": "agent", "tools": ["searcher_web_fetch"], "quote": "…"},
        valid_from=since,
        about="user|tea",
    )
    read = (await memory_db.read(lambda c: facts.get_facts(c, ada, [stored.id])))[stored.id]
    assert read == stored
    assert (read.category, read.confidence, read.source, read.trust) == ("decision", 0.8, "chat", "untrusted")
    assert read.origin["tools"] == ["searcher_web_fetch"]
    assert (read.valid_from, read.valid_until, read.about, read.current) == (since, None, "user|tea", True)


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize("again", ["likes GREEN tea", " Likes  green tea. ", "Likes green tea!", "Ｌikes green tea"])
async def test_the_same_text_in_other_dress_is_the_same_fact(memory_db: Database, ada: Owner, add, again: str) -> None:
    stored = await add()
    assert (await memory_db.read(lambda c: facts.find_same_fact(c, ada, again))) == stored
    assert fact_hash(again) == fact_hash("Likes green tea") != fact_hash("Likes black tea")


@pytest.mark.req("MEM-04")
async def test_saying_it_again_renews_the_time_and_never_lowers_trust(memory_db: Database, ada: Owner, add) -> None:
    stored = await add(trust="untrusted", confidence=0.7, origin={"kind": "agent"})

    async def again(trust: str, confidence: float) -> Fact:
        new = NewFact(stored.fact, "preference", "chat", confidence, trust, {"kind": "cli"})
        known = await memory_db.read(lambda c: facts.find_same_fact(c, ada, stored.fact))
        return await memory_db.write(lambda c: facts.refresh_fact(c, ada, known, new))

    untrusted = await again("untrusted", 0.5)
    assert untrusted.updated_at > stored.updated_at
    assert (untrusted.id, untrusted.confidence, untrusted.trust) == (stored.id, 0.7, "untrusted")
    trusted = await again("trusted", 0.9)
    assert (trusted.trust, trusted.confidence, trusted.origin["before"]) == ("trusted", 0.9, {"kind": "agent"})
    assert (await again("untrusted", 1)).trust == "trusted"


@pytest.mark.req("MEM-09")
async def test_a_retired_fact_leaves_the_indexes_and_stays_in_the_history(memory_db: Database, ada: Owner, add) -> None:
    old, new = await add("Lives in Berlin", vector=VECTOR), await add("Lives in Lisbon", vector=VECTOR)
    until = datetime(2030, 1, 1, tzinfo=UTC)
    gone = await memory_db.write(
        lambda c: facts.retire_facts(
            c, ada, [old.id, 999], "superseded", by=new.id, valid_until=until, origin={"kind": "cli"}
        )
    )
    assert gone == [old.id]
    assert await memory_db.read(lambda c: _words(c, ada, "Berlin")) == []
    assert list(await memory_db.read(lambda c: vectors.get_vectors(c, "fact", [old.id, new.id], VECTOR.model))) == [
        new.id
    ]
    kept = (await memory_db.read(lambda c: facts.get_facts(c, ada, [old.id])))[old.id]
    assert (kept.retired_because, kept.superseded_by, kept.valid_until) == ("superseded", new.id, until)
    assert kept.retired_at is not None
    assert kept.origin["retired"] == {"kind": "cli"}
    assert await memory_db.read(lambda c: facts.list_replaced_by(c, ada, new.id)) == [kept]
    assert await memory_db.write(lambda c: facts.retire_facts(c, ada, [old.id], "deleted")) == []
    assert await memory_db.read(lambda c: facts.find_same_fact(c, ada, "Lives in Berlin")) is None


@pytest.mark.req("MEM-09")
async def test_a_restored_fact_is_as_it_was(memory_db: Database, ada: Owner, add) -> None:
    stored = await add(origin={"kind": "agent"}, vector=VECTOR)
    await memory_db.write(lambda c: facts.retire_facts(c, ada, [stored.id], "deleted", origin={"kind": "cli"}))
    back = await memory_db.write(lambda c: facts.restore_facts(c, ada, [stored.id], {stored.id: VECTOR}))
    assert back == [stored]
    assert await memory_db.read(lambda c: _words(c, ada, "tea")) == [stored.id]
    assert list(await memory_db.read(lambda c: vectors.get_vectors(c, "fact", [stored.id], VECTOR.model))) == [
        stored.id
    ]
    assert await memory_db.write(lambda c: facts.restore_facts(c, ada, [stored.id])) == []


@pytest.mark.incident("I-30")
async def test_no_query_reaches_another_owners_facts(memory_db: Database, ada: Owner, bob: Owner, add) -> None:
    mine = await add("Lives in Berlin", about="user|home")
    for owner in (bob, Owner("ada", "muse")):
        assert await memory_db.read(lambda c, o=owner: facts.get_facts(c, o, [mine.id])) == {}
        assert await memory_db.read(lambda c, o=owner: facts.find_same_fact(c, o, mine.fact)) is None
        assert await memory_db.read(lambda c, o=owner: facts.list_current_about(c, o, "user|home")) == []
        assert await memory_db.read(lambda c, o=owner: facts.list_facts(c, o, include_retired=True)) == []
        assert await memory_db.write(lambda c, o=owner: facts.retire_facts(c, o, [mine.id], "deleted")) == []
        assert await memory_db.write(lambda c, o=owner: facts.restore_facts(c, o, [mine.id])) == []
    assert [fact.id for fact in await memory_db.read(lambda c: facts.list_current_about(c, ada, "user|home"))] == [
        mine.id
    ]
    numbers = [-1, 0, mine.id, 2**63, 10**30]  # what no row can be called is not there either
    assert list(await memory_db.read(lambda c: facts.get_facts(c, ada, numbers))) == [mine.id]


async def test_facts_are_listed_newest_first_page_by_page(memory_db: Database, ada: Owner, add) -> None:
    stored = [await add(f"Fact number {n}", category="pattern" if n % 2 else "project") for n in range(6)]
    await memory_db.write(lambda c: facts.retire_facts(c, ada, [stored[4].id], "deleted"))

    async def listed(**wanted: object) -> list[str]:
        return [fact.fact[-1] for fact in await memory_db.read(lambda c: facts.list_facts(c, ada, **wanted))]

    assert await listed() == ["5", "3", "2", "1", "0"]
    assert await listed(include_retired=True, limit=3) == ["5", "4", "3"]
    assert await listed(before_id=stored[3].id, limit=2) == ["2", "1"]
    assert await listed(category="project") == ["2", "0"]


async def test_looking_at_facts_is_noted(memory_db: Database, ada: Owner, bob: Owner, add) -> None:
    stored = await add()
    await memory_db.write(lambda c: facts.touch_facts(c, bob, [stored.id]))
    await memory_db.write(lambda c: facts.touch_facts(c, ada, []))
    assert (await memory_db.read(lambda c: facts.get_facts(c, ada, [stored.id])))[stored.id].last_accessed_at is None
    await memory_db.write(lambda c: facts.touch_facts(c, ada, [stored.id]))
    assert (await memory_db.read(lambda c: facts.get_facts(c, ada, [stored.id])))[
        stored.id
    ].last_accessed_at is not None


async def test_decisions_about_one_owner_are_made_one_after_the_other(memory_db: Database, ada: Owner) -> None:
    def once(connection) -> int:
        facts.lock_facts(connection, ada)
        known = facts.find_same_fact(connection, ada, "Likes tea")
        return (known or facts.add_fact(connection, ada, NewFact("Likes tea", "preference"))).id

    ids = await asyncio.gather(*(memory_db.write(once) for _ in range(20)))
    assert len(set(ids)) == 1
    assert await memory_db.read(lambda c: c.execute(select(func.count()).select_from(table)).scalar_one()) == 1


async def test_a_change_whose_field_names_were_forgotten_is_still_listed(memory_db: Database, ada: Owner) -> None:
    """Somebody may ask to forget a word that is part of `made` or `reason`."""
    kept = await memory_db.write(lambda c: fact_history.add_change(c, ada, "tidy", "", []))
    masked = [{"kind": "merge", "[forgotten]": 5}]
    await memory_db.write(lambda c: c.execute(update(changes).where(changes.c.id == kept.id).values(actions=masked)))
    (listed,) = await memory_db.read(lambda c: fact_history.list_changes(c, ada))
    assert listed.done == (FactChangePart("merge", (), None, ""),)


async def test_a_change_is_kept_until_it_is_undone(memory_db: Database, ada: Owner, bob: Owner) -> None:
    done = [FactChangePart("merge", (1, 2), 5, "the same"), FactChangePart("delete", (3,), None, "")]
    first = await memory_db.write(lambda c: fact_history.add_change(c, ada, "tidy", "1 × merge", done))
    second = await memory_db.write(lambda c: fact_history.add_change(c, ada, "tidy", "nothing", []))
    assert (first.retired, first.made, first.undone_at) == ([1, 2, 3], [5], None)
    assert await memory_db.read(lambda c: fact_history.get_change(c, ada, first.id)) == first
    assert await memory_db.read(lambda c: fact_history.get_change(c, bob, first.id)) is None
    assert await memory_db.read(lambda c: fact_history.list_changes(c, ada)) == [second, first]
    assert await memory_db.read(lambda c: fact_history.list_changes(c, bob)) == []
    await memory_db.write(lambda c: fact_history.mark_change_undone(c, bob, second.id))
    assert await memory_db.read(lambda c: fact_history.last_change(c, ada)) == second
    await memory_db.write(lambda c: fact_history.mark_change_undone(c, ada, second.id))
    assert await memory_db.read(lambda c: fact_history.last_change(c, ada)) == first
    assert await memory_db.read(lambda c: fact_history.last_change(c, bob)) is None
