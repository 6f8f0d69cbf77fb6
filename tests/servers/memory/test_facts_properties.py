"""Whatever is told in whatever order: nothing is lost, one of each contradiction is current, trust is not eroded."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from sqlalchemy import Connection, Engine

from annabelle.core.errors import Conflict, NotAllowed
from annabelle.servers.memory.fact_writer import correct_in_transaction, store_in_transaction
from annabelle.servers.memory.statement import read_statement
from annabelle.store.database import make_engine, sqlite_url
from annabelle.store.memory import facts, text_index
from annabelle.store.memory.facts import Fact, NewFact
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import metadata

OWNERS = (Owner("ada", "annabelle"), Owner("bob", "annabelle"))
SENTENCES = (
    "Lives in Berlin", "Lives in Lisbon", "No longer lives in Berlin", "Moved to Oslo", "Likes tea", "Hates tea",
    "Prefers tea over coffee", "Prefers coffee over tea", "The rent is 1200 euros", "The rent is 1300 euros",
    "Owns a red bicycle", "Owns a red bicycle with a bell",
)  # fmt: skip

told = st.tuples(
    st.sampled_from(["keep", "keep", "keep", "replace", "correct", "delete"]),
    st.sampled_from(OWNERS),
    st.sampled_from(SENTENCES),
    st.sampled_from(["trusted", "untrusted"]),
    st.integers(0, 30),
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder: Path = tmp_path_factory.mktemp("facts")
    made = make_engine(sqlite_url(folder / "memory.db"))
    with made.begin() as connection:
        metadata.create_all(connection)
        text_index.create_index(connection)
    yield made
    made.dispose()


def _tell(connection: Connection, story: list[tuple[str, Owner, str, str, int]]) -> Iterator[None]:
    for verb, owner, sentence, trust, which in story:
        new = NewFact(sentence, "background", trust=trust)
        ids = [fact.id for fact in facts.list_facts(connection, owner, include_retired=True, limit=200)]
        chosen = ids[which % len(ids)] if ids else None
        if verb == "delete" and chosen is not None:
            facts.retire_facts(connection, owner, [chosen], "deleted")
        elif verb == "correct" and chosen is not None:
            with contextlib.suppress(Conflict, NotAllowed):
                correct_in_transaction(connection, owner, chosen, new)
        else:
            store_in_transaction(connection, owner, new, chosen if verb == "replace" else None)
        yield


def _all(connection: Connection, owner: Owner) -> dict[int, Fact]:
    return {fact.id: fact for fact in facts.list_facts(connection, owner, include_retired=True, limit=500)}


@pytest.mark.req("MEM-09", "TRU-03", "MEM-04")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(story=st.lists(told, min_size=1, max_size=14))
def test_facts_hold_together_through_any_story(engine: Engine, story) -> None:
    with engine.connect() as connection:
        transaction = connection.begin()
        try:
            before: dict[Owner, dict[int, Fact]] = {owner: {} for owner in OWNERS}
            for (_, teller, *_), _ in zip(story, _tell(connection, story), strict=True):
                for owner in OWNERS:
                    now = _all(connection, owner)
                    if owner != teller:
                        assert now == before[owner]  # nobody else's rows are touched (I-30)
                    _check(before[owner], now)
                    before[owner] = now
        finally:
            transaction.rollback()


def _check(before: dict[int, Fact], now: dict[int, Fact]) -> None:
    assert before.keys() <= now.keys()
    current = [fact for fact in now.values() if fact.current]
    assert len({facts.fact_hash(fact.fact) for fact in current}) == len(current)
    for fact in now.values():
        if fact.id in before:
            assert fact.fact == before[fact.id].fact
        chain, link = [fact.id], fact
        while link.superseded_by is not None:
            after = now[link.superseded_by]
            assert after.id not in chain
            if before.get(link.id, link).current and not link.current:
                assert not (link.trust == "trusted" and after.trust == "untrusted")
            chain.append(after.id)
            link = after
        assert (fact.superseded_by is None) or not fact.current
    for one in current:
        for other in current:
            mine, theirs = read_statement(one.fact), read_statement(other.fact)
            if one.trust == other.trust == "trusted" and mine and theirs and one.id != other.id:
                assert not mine.contradicts(theirs)
