"""Search as tools use it: three tiers, owners apart, languages, dates, and what stands beside a hit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import Connection, delete, update

from annabelle.core.errors import InvalidArguments
from annabelle.core.messages import now
from annabelle.core.result_text import render_for_person
from annabelle.embeddings import EmbeddingConfig
from annabelle.embeddings.embedder import ModelName
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.search.search import Search
from annabelle.store.memory import facts, text_index, vectors
from annabelle.store.memory.facts import NewFact
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import conversations as turns_table, facts as facts_table
from servers.memory.memories import CallTool, MakeMemory, Memory

WITHOUT = EmbeddingConfig(provider="none", model="")
OWNER = Owner("owner", "annabelle")

DIALOGUE = [
    ("Nora", "Morning! I finally sent my first 6B yesterday at the gym."),
    ("Tom", "Amazing! I have news too: the chef let me put a dish on the menu."),
    ("Nora", "No way! Which one?"),
    ("Tom", "Smoked hake with a cider sauce, after my grandmother's recipe."),
    ("Nora", "When can I come and eat it?"),
    ("Tom", "It starts next Thursday, I will save you a seat."),
    ("Nora", "By the way, my dog had surgery on Tuesday. She ate a sock."),
    ("Tom", "Poor Pepper! Is she okay?"),
    ("Nora", "She wears the cone of shame, but the vet says she will be fine."),
]


async def tell(
    call: CallTool, dialogue: list[tuple[str, str]], session: str = "D1", at: str = "2023-05-08"
) -> list[int]:
    ids: list[int] = []
    for minute, (speaker, text) in enumerate(dialogue):
        stored = await call(
            "store_conversation",
            user_message=text,
            agent_response="",
            session_id=session,
            speaker=speaker,
            said_at=f"{at}T10:{minute:02d}",
        )
        ids.append(stored.conversation_id)
    return ids


async def know(memory: Memory, *texts: str, owner: Owner = OWNER, **more: Any) -> list[int]:
    """Facts with their vectors, without the decisions of store_fact."""
    library = await memory.library()
    ids: list[int] = []
    for text in texts:
        fact = await library.database.write(
            lambda c, text=text: facts.add_fact(c, owner, NewFact(text, "background", **more))
        )
        vector = await library.embed_or_none([text])
        if vector is not None:
            library.search.set_vectors("fact", owner, fact.id, vector[0])
        ids.append(fact.id)
    return ids


@pytest.mark.req("MEM-03")
async def test_facts_are_found_by_meaning_and_words_with_the_parts_of_the_score(memory: Memory) -> None:
    physician, tea, _ = await know(memory, "Her physician is Dr Okafor", "She drinks green tea", "The car is blue")
    found = await memory.as_()("retrieve_memories", query="Which doctor does she see?", limit=2)
    assert found.facts_tier == "hybrid"
    assert found.facts[0].id == physician  # not one word in common
    assert found.facts[0].parts.vector > 0.2
    found = await memory.as_()("retrieve_memories", query="green tea")
    assert (found.facts[0].id, found.facts[0].parts.text) == (tea, 1.0)
    assert all(0 <= part <= 1 for fact in found.facts for part in (fact.score, *fact.parts.model_dump().values()))
    assert [fact.score for fact in found.facts] == sorted((fact.score for fact in found.facts), reverse=True)


@pytest.mark.req("MEM-03")
async def test_words_alone_find_while_there_are_no_vectors(open_memory: MakeMemory, config: MemoryConfig) -> None:
    memory = open_memory(config, embedding=WITHOUT)
    tea, _, _ = await know(memory, "She drinks green tea", "The car is blue", "A garden")
    await tell(memory.as_(), DIALOGUE)
    found = await memory.as_()("retrieve_memories", query="Who is drinking tea, and what did the vet say?")
    assert (found.facts_tier, found.conversations_tier) == ("text", "text")
    assert found.facts[0].id == tea
    assert found.facts[0].parts.vector == 0
    assert "vet" in found.conversations[0].user_message


@pytest.mark.req("MEM-03")
@pytest.mark.parametrize("embedding", [EmbeddingConfig(), WITHOUT], ids=["embedded", "none"])
async def test_a_part_of_a_word_is_found_as_it_stands_when_nothing_else_is(
    open_memory: MakeMemory, config: MemoryConfig, embedding: EmbeddingConfig
) -> None:
    memory = open_memory(config, embedding=embedding)
    code, _ = await know(memory, "The locker code word is Qwertzuiop", "The car is blue")
    await tell(memory.as_(), [("Nora", "Say Abrakadabrantesk to enter"), ("Tom", "Fine")])
    found = await memory.as_()("retrieve_memories", query="ertzui")
    assert [fact.id for fact in found.facts][:1] == [code]
    found = await memory.as_()("search_conversations", query="dabrant")
    assert "Abrakadabrantesk" in found.conversations[0].user_message
    if embedding.provider == "none":
        assert found.tier == "substring"
    nothing = await memory.as_()("search_conversations", query="xyzzyplugh", limit=3)
    assert nothing.tier == "substring" or all(not turn.parts.text for turn in nothing.conversations)


@pytest.mark.req("MEM-03")
@pytest.mark.parametrize("embedding", [EmbeddingConfig(), WITHOUT], ids=["embedded", "none"])
@pytest.mark.parametrize(
    ("kept", "asked"),
    [
        ("Meine Schwester wohnt in der Gartenstraße in Köln", "Wo liegt die gartenstrasse?"),
        ("Babcia piecze szarlotkę w każdą niedzielę", "Kiedy babcia piecze SZARLOTKĘ?"),
        ("来週の金曜日に東京で会議があります", "東京で会議"),
    ],
)
async def test_german_polish_and_japanese_are_found(
    open_memory: MakeMemory, sqlite_config: MemoryConfig, kept: str, asked: str, embedding: EmbeddingConfig
) -> None:
    memory = open_memory(sqlite_config, embedding=embedding)
    wanted, *_ = await know(memory, kept, "Der Hund heißt Bello", "Kot śpi", "猫が好きです", "Tea is green")
    found = await memory.as_()("retrieve_memories", query=asked)
    assert found.facts[0].id == wanted


@pytest.mark.incident("I-30")
async def test_a_search_touches_its_owner_and_nobody_else(memory: Memory) -> None:
    owners = [("ada", "annabelle"), ("bob", "annabelle"), ("ada", "researcher")]
    for user, agent in owners:
        await know(memory, f"The treasure of {user} and {agent} is buried", owner=Owner(user, agent))
        await tell(memory.as_(user, agent), [("Nora", f"We dug for the treasure of {user} with {agent}")])
    for user, agent in owners:
        found = await memory.as_(user, agent)("retrieve_memories", query="Where is the treasure buried?", limit=50)
        assert [fact.fact for fact in found.facts] == [f"The treasure of {user} and {agent} is buried"]
        assert [turn.user_message for turn in found.conversations] == [
            f"We dug for the treasure of {user} with {agent}"
        ]
    nobody = await memory.as_("mallory")("retrieve_memories", query="treasure buried ada bob")
    assert (nobody.facts, nobody.conversations) == ([], [])
    assert nobody.to_text() == "Nothing is known about it."


@pytest.mark.req("FST-05")
async def test_a_person_is_told_only_what_fits_and_a_model_all_that_may(memory: Memory) -> None:
    await know(memory, "My sister is called Mia")
    await tell(memory.as_(), [("owner", "Remember that I like green tea")])
    stranger = await memory.as_()("retrieve_memories", query="what is my dog's name?")
    assert render_for_person(stranger.to_text) == "Nothing is known about it."
    assert "Mia" in stranger.to_text()
    known = await memory.as_()("retrieve_memories", query="what is my sister called?")
    assert render_for_person(known.to_text).startswith("My sister is called Mia")
    assert "green tea" in render_for_person((await memory.as_()("retrieve_memories", query="tea")).to_text)


@pytest.mark.req("MEM-03", "MEM-10")
async def test_an_answer_is_found_by_the_question_before_it_and_shown_with_what_stands_beside_it(
    memory: Memory,
) -> None:
    ids = await tell(memory.as_(), DIALOGUE)
    found = await memory.as_()("search_conversations", query="What dish did Tom put on the menu?", limit=3)
    assert ids[3] in [turn.id for turn in found.conversations]
    hit = next(turn for turn in found.conversations if turn.id == ids[3])
    assert (hit.before.id, hit.after.id) == (ids[2], ids[4])
    assert hit.parts.context > 0
    assert hit.parts.speaker == 1
    assert "Tom: Smoked hake" in found.to_text()


@pytest.mark.req("MEM-10")
async def test_of_two_who_said_the_same_the_one_asked_about_comes_first(memory: Memory) -> None:
    for number, speaker in enumerate(("Nora", "Tom", "Nora", "Tom")):
        await tell(memory.as_(), [(speaker, "I painted the cliffs at dawn")], f"D{number}")
    for asked in ("Nora", "Tom"):
        found = await memory.as_()("search_conversations", query=f"What did {asked} paint?")
        assert [turn.speaker for turn in found.conversations[:2]] == [asked, asked]


async def test_who_is_asked_about_is_who_said_it_not_who_was_addressed(memory: Memory) -> None:
    await tell(memory.as_(), [("Tom", "Nora, Nora, what a day for painting, Nora!"), ("Nora", "I painted the cliffs")])
    found = await memory.as_()("search_conversations", query="What did Nora paint?")
    assert found.conversations[0].speaker == "Nora"


async def test_neighbours_are_of_the_same_session_only(memory: Memory) -> None:
    first = await tell(memory.as_(), DIALOGUE[:1], "one")
    await tell(memory.as_(), DIALOGUE[1:3], "two")
    last = await tell(memory.as_(), DIALOGUE[6:7], "one")
    found = await memory.as_()("search_conversations", query="first 6B at the gym")
    assert found.conversations[0].id == first[0]
    assert found.conversations[0].before is None
    assert found.conversations[0].after.id == last[0]


@pytest.mark.req("MEM-03")
async def test_turns_are_found_within_days_and_times(memory: Memory) -> None:
    may = await tell(memory.as_(), [("Nora", "The concert was loud")], at="2023-05-08")
    june = await tell(memory.as_(), [("Nora", "The concert was quiet")], at="2023-06-08")
    ask = memory.as_()

    async def between(**days: str) -> list[int]:
        found = await ask("search_conversations", query="concert", **days)
        return sorted(turn.id for turn in found.conversations)

    assert await between() == may + june
    assert await between(date_to="2023-05-08") == may
    assert await between(date_from="2023-05-09") == june
    assert await between(date_from="2023-05-08T10:00", date_to="2023-05-08T10:00") == may
    assert await between(date_from="2023-05-08T10:00:01", date_to="2023-06-01") == []
    found = await ask("search_conversations", query="What concert did we hear in June 2023?")
    assert (found.conversations[0].id, found.conversations[0].parts.date) == (june[0], 1)
    for wrong in (
        {"date_from": "yesterday"},
        {"date_to": "2023-02-31"},
        {"date_from": "2023-06-01", "date_to": "2023-05-01"},
    ):
        with pytest.raises(InvalidArguments, match="date_"):
            await ask("search_conversations", query="concert", **wrong)


async def test_facts_are_found_within_a_category(memory: Memory) -> None:
    ids = await know(memory, *(f"The red house number {number}" for number in range(30)))
    library = await memory.library()
    change = update(facts_table).where(facts_table.c.id == ids[7]).values(category="decision")
    await library.database.write(lambda c: c.execute(change))
    found = await memory.as_()("retrieve_memories", query="red house", category="decision")
    assert [fact.id for fact in found.facts] == [ids[7]]


@pytest.mark.req("MEM-03")
async def test_a_small_memory_is_given_whole_to_whoever_asks_for_it_to_be_filled_up(memory: Memory) -> None:
    call = memory.as_("owner", "annabelle")
    await know(memory, "Prefers tea to coffee", "Zebras sleep standing", "The boat is called Nell")
    related = await call("retrieve_memories", query="What is the boat called?")
    assert [found.fact for found in related.facts] == ["The boat is called Nell"]
    filled = await call("retrieve_memories", query="What is the boat called?", fill=True)
    assert filled.facts[0].fact == "The boat is called Nell"
    assert len(filled.facts) == 3
    assert len((await call("retrieve_memories", query="quarterly tax return", fill=True, limit=2)).facts) == 2
    assert len((await call("retrieve_memories", query="quarterly tax return", limit=2)).facts) < 2


async def test_the_newer_and_the_surer_of_two_equal_facts_comes_first_and_buries_no_clear_hit(memory: Memory) -> None:
    (doubtful,) = await know(memory, "The meeting room is upstairs", confidence=0.2)
    (sure,) = await know(memory, "The meeting room is downstairs", confidence=1.0)
    (old,) = await know(memory, "The spare key hangs behind the boiler", confidence=0.3)
    fresh = await know(memory, "The boiler is loud", "The key of F major", "She hangs pictures", confidence=1.0)
    library = await memory.library()

    def age(connection: Connection) -> None:
        for number, days in (
            (old, 2000),
            (doubtful, 400),
            *((one, -900) for one in fresh),
        ):  # a clock that was set back
            at = datetime.now(UTC) - timedelta(days=days)
            connection.execute(update(facts_table).where(facts_table.c.id == number).values(updated_at=at))

    await library.database.write(age)
    found = await memory.as_()("retrieve_memories", query="Where does the spare key hang?")
    assert found.facts[0].id == old
    assert all(fact.parts.recency <= 1 for fact in found.facts)
    found = await memory.as_()("retrieve_memories", query="meeting room stairs")
    assert [fact.id for fact in found.facts[:2]] == [sure, doubtful]


async def test_what_is_dropped_or_retired_is_found_no_more(memory: Memory) -> None:
    ids = await know(memory, "The red balloon", "The green balloon")
    turns = await tell(memory.as_(), DIALOGUE)
    library = await memory.library()
    await library.database.write(lambda c: facts.retire_facts(c, OWNER, ids[:1], "deleted"))
    library.search.drop("fact", OWNER, ids[:1])

    def remove(connection: Connection) -> None:
        connection.execute(delete(turns_table).where(turns_table.c.id == turns[3]))
        text_index.remove_rows(connection, "conversation", turns[3:4])

    await library.database.write(remove)
    library.search.drop("conversation", OWNER, turns[3:4])
    found = await memory.as_()("retrieve_memories", query="red balloon smoked hake cider", limit=20)
    assert [fact.id for fact in found.facts] == ids[1:]
    assert turns[3] not in [turn.id for turn in found.conversations]
    beside = next(turn for turn in found.conversations if turn.id == turns[4])
    assert beside.before.id == turns[2]


async def test_what_was_stored_is_found_after_a_restart(open_memory: MakeMemory, config: MemoryConfig) -> None:
    first = open_memory(config)
    turns = await tell(first.as_(), DIALOGUE)
    await know(first, "Her physician is Dr Okafor")
    await (await first.library()).reembedding.embed_batch(100)
    before = await first.as_()("retrieve_memories", query="What dish did Tom put on the menu? Which doctor?")
    await first.close()
    again = open_memory(config)
    after = await again.as_()("retrieve_memories", query="What dish did Tom put on the menu? Which doctor?")
    assert after.conversations_tier == after.facts_tier == "hybrid"
    assert [turn.id for turn in after.conversations] == [turn.id for turn in before.conversations]
    assert {turn.id for turn in after.conversations} <= set(turns)
    assert after.conversations[0].parts.context == pytest.approx(before.conversations[0].parts.context, abs=0.01)


@pytest.mark.req("EMB-01")
async def test_vectors_of_another_model_are_not_compared(open_memory: MakeMemory, config: MemoryConfig) -> None:
    first = open_memory(config)
    await tell(first.as_(), DIALOGUE)
    library = await first.library()
    await library.database.write(lambda c: c.exec_driver_sql("UPDATE vectors SET model = 'another/model'"))
    await first.close()
    again = open_memory(replace(config, embedding=WITHOUT))
    found = await again.as_()("search_conversations", query="What did the vet say?")
    assert found.tier == "text"
    assert "vet" in found.conversations[0].user_message


@pytest.mark.req("EMB-01")
async def test_a_model_whose_name_is_known_with_its_first_answer_finds_its_own_vectors(memory: Memory) -> None:
    """As a local server does, which says only then what it has loaded."""
    (home,) = await know(memory, "Ada's flat is near the harbour")
    library = await memory.library()
    row = await library.embed_or_none(["Ada's flat is near the harbour"])
    assert row is not None
    model, data = str(library.embedder.model), row.astype("<f4").tobytes()
    await library.database.write(lambda c: vectors.store_vector(c, "fact", OWNER, home, model, data, row.shape[1]))

    class Late:
        model = ModelName(library.embedder.model.provider, "")

        async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
            self.model = library.embedder.model
            return await library.embedder.embed(texts, query=query)

        async def close(self) -> None:
            pass

    search = Search(library.database, Late())
    await search.load()
    found = await search.search_facts(OWNER, "harbour flat", 5)
    assert (found.tier, [hit.row_id for hit in found.hits]) == ("hybrid", [home])


async def test_what_is_stored_while_the_search_is_loaded_anew_is_found(memory: Memory) -> None:
    _, gone = await know(memory, "Her physician is Dr Okafor", "The car is blue")
    library = await memory.library()
    loading = asyncio.create_task(library.search.load())
    await asyncio.sleep(0)  # so that it has begun
    later = await know(memory, "His dentist is Dr Lund")
    library.search.drop("fact", OWNER, [gone])
    turns = await tell(memory.as_(), DIALOGUE[:2])
    await loading
    vector = await library.embed_or_none(["doctor"])
    assert vector is not None
    assert {row for row, _ in library.search.find_similar_facts(OWNER, vector[0], 9)} >= set(later)
    assert gone not in {row for row, _ in library.search.find_similar_facts(OWNER, vector[0], 9)}
    found = await library.search.search_conversations(OWNER, "What news did Tom have?", 2)
    assert {hit.row_id for hit in found.hits} == set(turns)


async def test_hostile_queries_are_answered(memory: Memory) -> None:
    await know(memory, "plain words")
    await tell(memory.as_(), DIALOGUE[:2])
    hostile = ['"NEAR(a b) * OR', "'; DROP TABLE facts;--", "a\x00b", "\ud800", "😀", "%_\\", "x" * 50_000, "w " * 5000]
    for query in hostile:
        await memory.as_()("retrieve_memories", query=query)
        await memory.as_()("search_conversations", query=query)
    for tool in ("retrieve_memories", "search_conversations"):
        with pytest.raises(InvalidArguments, match="query is empty"):
            await memory.as_()(tool, query="  \n")
    found = await memory.as_()("retrieve_memories", query="plain")
    assert [fact.fact for fact in found.facts] == ["plain words"]


async def test_that_facts_were_looked_at_is_noted(memory: Memory) -> None:
    known, other = await know(memory, "plain words", "The car is blue")
    began = now()
    await memory.as_()("retrieve_memories", query="plain words", limit=1)
    library = await memory.library()
    rows = await library.database.read(lambda c: facts.get_facts(c, OWNER, [known, other]))
    assert rows[known].last_accessed_at is not None
    assert rows[known].last_accessed_at >= began - timedelta(seconds=1)
    assert rows[other].last_accessed_at is None
