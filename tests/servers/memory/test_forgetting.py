"""The memory forgets a text for good, on both engines, and nothing else."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa

from annabelle.core.errors import NotFound
from annabelle.core.messages import now
from annabelle.core.secrets.forget_mask import ForgetMatcher
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.open_memory import OpenMemory
from annabelle.store.memory import facts, text_index
from annabelle.store.memory.facts import NewFact
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import facts as fact_table, import_rows, imports, vectors
from servers.memory.memories import MakeMemory, Memory
from support.timing import seconds

SECRET = "Zürich Vault 4711"
MINE = Owner("owner", "annabelle")
NEEDLE = ForgetMatcher([SECRET, "vault", "zurich"])


async def cells(library: OpenMemory) -> str:
    """Every cell of every table, the index's own tables included."""

    def read(connection: sa.Connection) -> str:
        names = sa.inspect(connection).get_table_names()
        rows = (row for name in names for row in connection.exec_driver_sql(f'SELECT * FROM "{name}"'))
        return "\n".join(
            cell.decode(errors="replace") if isinstance(cell, bytes) else str(cell) for row in rows for cell in row
        )

    return await library.database.read(read)


async def keep(memory: Memory, *new: NewFact, owner: Owner = MINE) -> list[int]:
    library = await memory.library()
    return [(await library.database.write(lambda c, one=one: facts.add_fact(c, owner, one))).id for one in new]


async def fill(memory: Memory) -> list[int]:
    """Everything that can hold a text holds it."""
    call = memory.as_()
    ids = await keep(
        memory,
        NewFact(f"Ada hides the key in {SECRET.lower()}", "background"),
        NewFact("Ada likes tea", "preference", origin={"kind": "agent", "quote": f"tea, and {SECRET}"}),
        NewFact("Ada lives in Lisbon", "background", about=f"{SECRET}|home", source=f"import of {SECRET}.md"),
    )
    await call("store_conversation", user_message="hello", agent_response=f"The code is {SECRET}.", session_id="s")
    await call("store_conversation", user_message="good evening", agent_response="Hi.", session_id=f"{SECRET} chat")
    await call("update_profile", updates={"vaults": [SECRET, "Basel"], "name": "Ada"}, reason=f"heard of {SECRET}")
    await call("create_contact", name=SECRET, email="vault@example.org")
    await call("create_contact", name="Bob", email="bob@example.org", notes=f"knows {SECRET}")
    await call("create_project", name="Garden", description=f"pays for {SECRET}")
    library = await memory.library()

    def stage(connection: sa.Connection) -> None:
        begun = {**MINE.columns(), "digest": "d", "name": "notes.md", "total": 2, "begun_at": now(), "finished": False}
        number = connection.execute(sa.insert(imports).values(begun).returning(imports.c.id)).scalar_one()
        connection.execute(sa.insert(import_rows).values(import_id=number, number=1, row={"fact": SECRET}))

    await library.database.write(stage)
    return ids


@pytest.mark.req("TRU-09")
async def test_a_text_is_gone_from_rows_index_and_vectors_and_the_rest_stays(memory: Memory):
    ids = await fill(memory)
    hub = memory.as_hub()
    assert ForgetMatcher([SECRET]).found_in(await cells(await memory.library()))
    seen = await hub("forget_matches", texts=[SECRET])
    assert [(fact.id, fact.current) for fact in seen.facts] == [(ids[0], True)]

    done = await hub("forget_text", texts=[SECRET.upper()])

    assert done.counts == seen.counts
    assert done.counts["conversations"] == 2
    left = await cells(await memory.library())
    assert not NEEDLE.found_in(left.replace("vaults", "").replace("vault@", ""))
    assert (await hub("forget_matches", texts=[SECRET])).counts == {}
    call = memory.as_()
    assert (await call("get_profile")).profile == {"user": {"vaults": ["Basel"], "name": "Ada"}}
    for kept in ("Ada likes tea", "Ada lives in Lisbon", "good evening", "Bob", "Garden"):
        assert kept in left
    await asyncio.wait_for(
        (await memory.library()).upkeep.wait_until_done(), seconds(20)
    )  # rows get their vectors in the background
    recalled = await call("retrieve_memories", query="What does Ada drink?", include_conversations=False)
    assert [fact.fact for fact in recalled.facts][:1] == ["Ada likes tea"]


@pytest.mark.req("TRU-09")
async def test_what_is_forgotten_is_not_found_by_its_words_or_its_meaning(memory: Memory):
    await fill(memory)
    await memory.as_hub()("forget_text", texts=[SECRET])
    found = await memory.as_()("retrieve_memories", query=SECRET)
    assert not NEEDLE.found_in(found.model_dump_json())
    library = await memory.library()
    terms = await library.database.read(lambda c: text_index.count_terms(c, "fact", "vaults"))
    assert [term.frequency for term in terms] == [0]
    owners = await library.database.read(lambda c: c.execute(sa.select(vectors.c.kind, vectors.c.row_id)).all())
    known = await library.database.read(lambda c: set(c.execute(sa.select(fact_table.c.id)).scalars()))
    assert {row_id for kind, row_id in owners if kind == "fact"} <= known


@pytest.mark.req("TRU-09")
async def test_no_page_journal_or_cache_of_the_memory_keeps_it(open_memory: MakeMemory, sqlite_config: MemoryConfig):
    memory = open_memory(sqlite_config)
    await fill(memory)
    cache = memory.config.embedding_cache
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "some-model.vectors").write_bytes(b"hash")

    await memory.as_hub()("forget_text", texts=[SECRET])

    assert not list(cache.glob("*.vectors"))
    for path in memory.config.file.parent.rglob("*"):
        if path.is_file():
            content = path.read_bytes().lower().replace(b"vaults", b"").replace(b"vault@", b"")
            assert not NEEDLE.found_in_bytes(content), path


@pytest.mark.incident("I-30")
async def test_what_another_person_remembers_stays_theirs(memory: Memory):
    await keep(memory, NewFact(SECRET, "background"), owner=Owner("bob", "annabelle"))
    assert (await memory.as_hub()("forget_text", texts=[SECRET])).counts == {}
    assert SECRET in await cells(await memory.library())
    assert (await memory.as_hub("bob")("forget_text", texts=[SECRET])).counts == {"facts": 1}


async def test_every_agent_of_a_person_forgets(memory: Memory):
    await keep(memory, NewFact(SECRET, "background"), owner=Owner("owner", "other"))
    assert (await memory.as_hub()("forget_text", texts=[SECRET])).counts == {"facts": 1}


async def test_a_fact_goes_with_those_it_replaced_and_on_demand_with_what_was_said(memory: Memory):
    call, hub = memory.as_(), memory.as_hub()
    said = "I moved from Bern to Basel last week, you know"
    await call("store_conversation", user_message=said, agent_response="ok", session_id="s")
    first, second = await keep(
        memory,
        NewFact("Ada lives in Bern", "background"),
        NewFact("Ada lives in Basel", "background", origin={"kind": "conversation", "conversation_id": 1}),
    )
    library = await memory.library()
    replaced = sa.update(fact_table).where(fact_table.c.id == first).values(superseded_by=second)
    await library.database.write(lambda c: c.execute(replaced) and None)

    assert (await hub("forget_fact_texts", fact_id=second)).texts == ["Ada lives in Basel", "Ada lives in Bern"]
    texts = (await hub("forget_fact_texts", fact_id=second, with_source=True)).texts
    assert texts == ["Ada lives in Basel", "Ada lives in Bern", said]  # and not the "ok", which stands everywhere
    with pytest.raises(NotFound):
        await memory.as_hub("bob")("forget_fact_texts", fact_id=second)
