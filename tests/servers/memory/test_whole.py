"""Whoever gives up waiting leaves no difference between what is stored and what search knows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annabelle.core.errors import NotFound
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.open_memory import OpenMemory
from annabelle.servers.memory.vector_backfill import Uncancellable
from annabelle.store.memory.owner import Owner
from servers.memory.memories import MakeMemory
from support.timing import seconds

OWNER = Owner("owner", "annabelle")


class Committed:
    """Holds every change back right after it was committed, until it is let go."""

    def __init__(self, library: OpenMemory, monkeypatch: pytest.MonkeyPatch) -> None:
        self._write, self._reached, self._gate = library.database.write, asyncio.Event(), asyncio.Event()
        self._passed = 0
        monkeypatch.setattr(library.database, "write", self)

    async def __call__(self, change: Callable[..., Any]) -> Any:
        result = await self._write(change)
        self._passed -= 1
        if self._passed >= 0:
            return result
        self._reached.set()
        await self._gate.wait()
        return result

    async def given_up_on(self, call: Any, *, after: int = 0) -> None:
        """Make a call, and cancel it when its change is committed, after others, and nothing has followed yet."""
        self._passed = after
        self._reached.clear()
        self._gate.clear()
        task = asyncio.create_task(call)
        await asyncio.wait_for(self._reached.wait(), seconds(10))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        self._gate.set()


async def _known_by_meaning(library: OpenMemory, text: str) -> list[int]:
    vector = await library.embed_or_none([text])
    assert vector is not None
    return [row for row, cosine in library.search.find_similar_facts(OWNER, vector[0], 5) if cosine > 0.95]


@pytest.mark.req("MEM-03")
async def test_a_call_that_is_given_up_when_its_row_is_stored_is_known_to_search_all_the_same(
    open_memory: MakeMemory, sqlite_config: MemoryConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = open_memory(sqlite_config)
    call, hub, library = memory.as_(), memory.as_hub(message_id="msg_1"), await memory.library()
    committed = Committed(library, monkeypatch)

    await committed.given_up_on(call("store_fact", fact="Plays the cello", category="preference"))
    await library.uncancellable.close()
    (fact,) = (await call("list_facts")).facts
    assert await _known_by_meaning(library, "Plays the cello") == [fact.id]

    await committed.given_up_on(hub("store_conversation", user_message="I bought a canoe", agent_response="Nice!"))
    await library.uncancellable.close()
    again = await hub("store_conversation", user_message="I bought a canoe", agent_response="Nice!")
    found = await library.search.search_conversations(OWNER, "a boat to paddle", 1)
    assert (again.status, [hit.row_id for hit in found.hits]) == ("known", [again.conversation_id])

    await committed.given_up_on(call("delete_fact", fact_id=fact.id))
    await library.uncancellable.close()
    assert await _known_by_meaning(library, "Plays the cello") == []


async def test_an_import_that_is_given_up_when_it_is_stored_is_known_to_search_all_the_same(
    open_memory: MakeMemory, sqlite_config: MemoryConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = open_memory(sqlite_config)
    person, library = memory.as_person(), await memory.library()
    await person("store_fact", fact="Plays the cello", category="preference")
    folder = Path((await person("export_memory")).folder)
    page = (folder / "facts.md").read_text()
    (folder / "facts.md").write_text(page.replace("Plays the cello", "Sails a dinghy"))

    committed = Committed(library, monkeypatch)
    await committed.given_up_on(person("import_memory", file_path="facts.md"), after=2)  # begun and put aside
    await library.uncancellable.close()

    assert [fact.fact for fact in (await person("list_facts")).facts] == ["Sails a dinghy"]
    assert await _known_by_meaning(library, "Plays the cello") == []


async def test_closing_waits_for_what_is_under_way_and_a_failure_is_told_to_whoever_asked() -> None:
    whole, gate, done = Uncancellable(), asyncio.Event(), list[str]()

    async def work() -> None:
        await gate.wait()
        done.append("done")

    async def fail() -> None:
        raise NotFound("There is no such thing.")

    with pytest.raises(NotFound):
        await whole.run(fail())
    asking = asyncio.create_task(whole.run(work()))
    await asyncio.sleep(0)
    asking.cancel()
    closing = asyncio.create_task(whole.close())
    await asyncio.sleep(0)
    gate.set()
    await asyncio.wait_for(closing, seconds(10))
    assert done == ["done"]
