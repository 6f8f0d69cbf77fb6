"""Full text: stems, languages, owners apart, and nothing a person types is syntax."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from sqlalchemy import Connection

from annabelle.core.text import fold_for_search, split_search_words
from annabelle.store.database import Database, sqlite_url
from annabelle.store.memory import text_index
from annabelle.store.memory.owner import Owner, SearchKind
from annabelle.store.memory.tables import MEMORY_PLAN
from support.timing import seconds

HOSTILE = [
    '"NEAR(a b, 3) * OR AND NOT ^ : {text} : x',
    "'; DROP TABLE facts; --",
    "a\x00b",
    "\ud800 half a character",
    "😀🎉",
    "* \" ' ( ) : - + ~ | & ! < > @",
    "%_\\",
    ":word0 ? ?1 %(x)s {0}",
    "a" * 5000,
    "w " * 3000,
    "",
    " \n\t",
]
Ask = Callable[..., list[int]]


def asking(owner: Owner, kind: SearchKind = "fact") -> Callable[[Connection, str], list[int]]:
    def ask(connection: Connection, query: str) -> list[int]:
        wanted = text_index.count_terms(connection, kind, query)
        return [row for row, _ in text_index.find_rows(connection, kind, owner, wanted, 10)]

    return ask


async def fill(db: Database, owner: Owner, texts: dict[int, str], kind: SearchKind = "fact", around: str = "") -> None:
    def write(connection: Connection) -> None:
        for row_id, text in texts.items():
            text_index.index_row(connection, kind, owner, row_id, text, around)

    await db.write(write)


@pytest.mark.req("MEM-03")
@pytest.mark.parametrize("kind", ["fact", "conversation"])
async def test_words_are_found_by_their_stem_the_rarest_first(
    memory_db: Database, ada: Owner, kind: SearchKind
) -> None:
    texts = {
        1: "She runs every morning",
        2: "They were running late",
        3: "A morning in Paris",
        4: "An evening",
        5: "No",
    }
    await fill(memory_db, ada, texts, kind)
    ask = asking(ada, kind)
    assert sorted(await memory_db.read(lambda c: ask(c, "run"))) == [1, 2]
    assert await memory_db.read(lambda c: ask(c, "mornings")) in ([1, 3], [3, 1])
    assert await memory_db.read(lambda c: ask(c, "morning Paris")) == [3, 1], "Paris is in one row, morning in two"
    assert await memory_db.read(lambda c: ask(c, "nowhere")) == []


@pytest.mark.req("MEM-03")
@pytest.mark.parametrize("kind", ["fact", "conversation"])
async def test_of_many_rows_with_a_word_the_best_are_found(memory_db: Database, ada: Owner, kind: SearchKind) -> None:
    texts = dict.fromkeys(range(1, 40), "We talked about the garden for a very long time")
    await fill(memory_db, ada, texts | {20: "The garden gate squeaks"}, kind)

    def first(connection: Connection) -> list[int]:
        wanted = text_index.count_terms(connection, kind, "garden gate")
        return [row for row, _ in text_index.find_rows(connection, kind, ada, wanted, 1)]

    assert await memory_db.read(first) == [20]


@pytest.mark.req("MEM-03")
@pytest.mark.parametrize(
    ("kept", "asked"),
    [
        ("Ich wohne in der Gartenstraße", "gartenstrasse"),
        ("Lubię mieszkać w Łodzi", "lodzi"),
        ("Ona lubi żółte róże", "RÓŻE"),
        ("東京都に住んでいます", "東京"),
        ("서울에서 일합니다", "서울"),
        ("Мы живём в Москве", "москве"),
    ],
)
async def test_other_languages_are_found_without_case_accents_and_spaces(
    memory_db: Database, ada: Owner, kept: str, asked: str
) -> None:
    await fill(memory_db, ada, {1: kept, 2: "something else", 3: "and another"})
    ask = asking(ada)
    assert await memory_db.read(lambda c: ask(c, asked)) == [1]
    assert await memory_db.read(lambda c: text_index.find_substring(c, "fact", ada, asked, 5)) == [1]


@pytest.mark.incident("I-30")
async def test_an_owner_finds_only_its_own_rows(memory_db: Database, ada: Owner, bob: Owner) -> None:
    other_agent = Owner("ada", "researcher")
    for number, owner in enumerate((ada, bob, other_agent), 1):
        for kind in ("fact", "conversation"):
            await fill(memory_db, owner, {number: "the secret garden"}, kind)
    for number, owner in enumerate((ada, bob, other_agent), 1):
        for kind in ("fact", "conversation"):
            ask = asking(owner, kind)
            assert await memory_db.read(lambda c, ask=ask: ask(c, "secret garden")) == [number]
            found = await memory_db.read(
                lambda c, owner=owner, kind=kind: text_index.find_substring(c, kind, owner, "cret gar", 9)
            )
            assert found == [number]
    nobody = asking(Owner("mallory", "annabelle"))
    assert await memory_db.read(lambda c: nobody(c, "secret garden")) == []


async def test_a_row_is_indexed_anew_and_taken_out(memory_db: Database, ada: Owner) -> None:
    await fill(memory_db, ada, {1: "old words", 2: "old too"}, around="colour")
    await fill(memory_db, ada, {1: "new words"})
    ask = asking(ada)
    assert await memory_db.read(lambda c: ask(c, "old")) == [2]
    assert await memory_db.read(lambda c: ask(c, "colour")) == [2]
    await memory_db.write(lambda c: text_index.remove_rows(c, "fact", [1, 2, 99]))
    assert await memory_db.read(lambda c: ask(c, "new old words")) == []


async def test_words_of_the_text_count_more_than_those_around_it(memory_db: Database, ada: Owner) -> None:
    def write(connection: Connection) -> None:
        text_index.index_row(connection, "conversation", ada, 1, "we talked of nothing", "Caroline Monday")
        text_index.index_row(connection, "conversation", ada, 2, "I saw Caroline there", "Mel Monday")
        for row in range(3, 9):
            text_index.index_row(connection, "conversation", ada, row, f"filler number {row}", "Mel Monday")

    await memory_db.write(write)
    ask = asking(ada, "conversation")
    assert await memory_db.read(lambda c: ask(c, "caroline")) == [2, 1]


async def test_what_is_taken_out_leaves_no_word_in_the_file(ada: Owner, tmp_path: Path) -> None:
    db = await Database.open(sqlite_url(tmp_path / "memory.db"), plan=MEMORY_PLAN)
    await fill(db, ada, {1: "zanzibarium is the canary", 2: "a row that stays"})
    await db.write(lambda c: text_index.remove_rows(c, "fact", [1]))
    left = await db.read(lambda c: c.exec_driver_sql("SELECT term FROM fact_terms WHERE term LIKE 'zanz%'").fetchall())
    assert left == []
    await db.close()


@pytest.mark.req("MEM-03")
async def test_nothing_in_a_query_is_syntax(memory_db: Database, ada: Owner) -> None:
    await fill(memory_db, ada, {1: "plain words", 2: "100% of _under_score"})
    await fill(memory_db, ada, {3: "plain words"}, "conversation")
    for query in HOSTILE:
        for kind in ("fact", "conversation"):
            ask = asking(ada, kind)
            await memory_db.read(lambda c, ask=ask, query=query: ask(c, query))
            await memory_db.read(lambda c, kind=kind, query=query: text_index.find_substring(c, kind, ada, query, 5))
    assert await memory_db.read(lambda c: text_index.find_substring(c, "fact", ada, "%", 5)) == [2]
    assert await memory_db.read(lambda c: text_index.find_substring(c, "fact", ada, "_UNDER", 5)) == [2]
    await fill(memory_db, ada, dict(enumerate(HOSTILE, 10)))  # and such things can be kept
    ask = asking(ada)
    assert 1 in await memory_db.read(lambda c: ask(c, "plain"))


async def test_whatever_is_kept_is_found_by_its_own_words(ada: Owner, tmp_path: Path) -> None:
    db = await Database.open(sqlite_url(tmp_path / "memory.db"), plan=MEMORY_PLAN)
    ask = asking(ada)

    async def kept_and_asked(text: str) -> None:
        await fill(db, ada, {1: text})
        known = await db.read(lambda c: text_index.count_terms(c, "fact", text))
        found = await db.read(lambda c: ask(c, text))
        assert found == ([1] if any(term.frequency for term in known) else [])
        as_it_stands = await db.read(lambda c: text_index.find_substring(c, "fact", ada, text, 2))
        assert as_it_stands == ([1] if fold_for_search(text).strip() else [])

    loop = asyncio.get_running_loop()

    @settings(max_examples=60, deadline=None)
    @given(text=st.text(max_size=60))
    def check(text: str) -> None:
        asyncio.run_coroutine_threadsafe(kept_and_asked(text), loop).result(seconds(30))

    await asyncio.to_thread(check)
    await db.close()


@given(text=st.text())
def test_folding_takes_any_text_and_leaves_words_that_fold_to_themselves(text: str) -> None:
    assert "\x00" not in fold_for_search(text)
    for word in split_search_words(text):
        assert split_search_words(word) == [word] or len(word) <= 2
