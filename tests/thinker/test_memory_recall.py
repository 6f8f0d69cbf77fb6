"""How a turn asks memory: in one question, for what its person may have, and without waiting long."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from annabelle.core.contract import ToolCall, ToolList
from annabelle.core.errors import AnnabelleError, ErrorBody, HubUnreachable, Unavailable
from annabelle.core.tools import ToolResult
from annabelle.thinker.prompt.memory_recall import GET_PROFILE, RETRIEVE, MemoryRecall, RecalledContext
from annabelle.thinker.prompt.prompt import build_memories_layer
from support.timing import seconds
from thinker.fake_hub import tool
from thinker.recollections import FACT, PROFILE, UTC_ZONE, built
from thinker.thinkers import brief


class MemoryHub:
    """A hub with memory's tools; an answer may be data, an error, or a coroutine."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.calls = answers, list[tuple[ToolCall, str]]()
        names = [f"memory_{name}" for name in answers] + ["other_tool"]
        self.specs = [tool(n).model_copy(update={"server": n.partition("_")[0]}) for n in names]

    async def tools(self) -> ToolList:
        return ToolList(version="1", tools=tuple(self.specs))

    async def call(self, call: ToolCall, user_id: str) -> ToolResult:
        self.calls.append((call, user_id))
        answer = self.answers[call.name.removeprefix("memory_")]
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, AnnabelleError):
            raise answer
        if isinstance(answer, ErrorBody):
            return ToolResult.failure(answer)
        return ToolResult(text="…", structured=answer)


@pytest.mark.req("MEM-09", "CTX-01")
async def test_what_was_kept_back_is_said_so_that_the_model_can_ask_for_it() -> None:
    hub = MemoryHub(retrieve_memories={"facts": [FACT], "kept_back": 2})
    asked = brief("Where do I live?")
    found = await MemoryRecall(hub).recall(asked, asked.text)
    assert found.kept_back == 2
    shown = build_memories_layer(found.memories, UTC_ZONE, kept_back=found.kept_back).text
    assert "<more>2 from content of others: search_memories shows them</more>" in shown
    assert "The user lives in Lisbon." in shown
    assert "<more>" in build_memories_layer((), UTC_ZONE, kept_back=1).text, "also when nothing else came to mind"


async def test_profile_and_memories_are_one_question_and_leave_no_record() -> None:
    hub = MemoryHub(get_profile=PROFILE, retrieve_memories={"facts": [FACT], "profile": PROFILE})
    asked = brief("Where do I live?", user_id="ada")
    found = await MemoryRecall(hub).recall(asked, asked.text)
    assert found.profile.persona() == {"name": "Nell"}
    assert [memory.fact for memory in found.memories] == ["The user lives in Lisbon."]
    about = {"query": "Where do I live?", "limit": 5, "fill": True, "trusted_only": True, "include_profile": True}
    assert [(c.name, c.arguments, c.call_id, c.message_id, u) for c, u in hub.calls] == [
        (RETRIEVE, about, None, asked.message_id, "ada"),
    ]


@pytest.mark.req("MEM-09", "CTX-08")
async def test_the_labels_of_a_profile_that_came_with_memories_hold_for_each_field() -> None:
    marked = {**PROFILE, "trust": "untrusted", "untrusted_fields": ["persona.name", "user.city"]}
    hub = MemoryHub(get_profile=PROFILE, retrieve_memories={"facts": [FACT], "profile": marked, "trust": "untrusted"})
    found = await MemoryRecall(hub).recall(brief("hello"), "hello")
    assert found.profile.persona() == {}
    assert found.profile.untrusted == {"persona.name", "user.city"}
    assert found.memories[0].trust == "trusted"


async def test_a_message_without_a_word_asks_for_no_memories_and_a_long_one_for_its_beginning() -> None:
    hub = MemoryHub(get_profile=PROFILE, retrieve_memories={})
    await MemoryRecall(hub).recall(brief("?! 👍"), "?! 👍")
    assert [call.name for call, _ in hub.calls] == [GET_PROFILE]
    await MemoryRecall(hub).recall(brief("x"), "word " * 10_000)
    assert len(str(hub.calls[-1][0].arguments["query"])) == 1000


async def test_an_agent_that_may_not_use_memory_is_not_told_what_is_in_it() -> None:
    hub = MemoryHub(retrieve_memories={"facts": [FACT], "profile": PROFILE})
    found = await MemoryRecall(hub).recall(brief("hello"), "hello")
    assert (found.profile.content, len(found.memories), len(hub.calls)) == ({}, 1, 1)
    assert "include_profile" not in hub.calls[0][0].arguments
    impostor = MemoryHub(get_profile=PROFILE)
    impostor.specs = [spec.model_copy(update={"server": "evil"}) for spec in impostor.specs]
    assert await MemoryRecall(impostor).recall(brief("hello"), "hello") == RecalledContext()
    assert impostor.calls == []


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (Unavailable("The memory is down."), "unavailable"),
        (HubUnreachable("away"), "hub_unreachable"),
        (ErrorBody(code="not_allowed", message="no"), "not_allowed"),
        (None, "no structured result"),
    ],
)
async def test_a_memory_in_trouble_costs_only_what_it_would_have_told(
    tmp_path: Path, trouble: object, said: str
) -> None:
    hub = MemoryHub(get_profile=PROFILE, retrieve_memories=trouble)
    found = await MemoryRecall(hub).recall(brief("hello"), "hello")
    assert found.profile.persona() == {"name": "Nell"}
    assert found.trouble == (f"{RETRIEVE}: {said}",)
    assert (await built(tmp_path, found)).layers["trouble"] == [f"{RETRIEVE}: {said}"]


async def test_a_slow_memory_is_not_waited_for() -> None:
    hub = MemoryHub(get_profile=PROFILE, retrieve_memories=asyncio.sleep(60))
    found = await MemoryRecall(hub, 0.05, 0.05).recall(brief("hello"), "hello")
    assert (found.trouble, found.profile.content, len(hub.calls)) == ((f"{RETRIEVE}: too slow",), {}, 1)
    hub = MemoryHub(get_profile=asyncio.sleep(60))
    found = await MemoryRecall(hub, 0.05, 0.05).recall(brief("hello"), "hello")
    assert found.trouble == (f"{GET_PROFILE}: too slow",)


async def test_a_memory_that_opens_is_given_more_time_once() -> None:
    opened = asyncio.Event()

    async def opening() -> dict[str, Any]:
        await asyncio.wait_for(opened.wait(), seconds(30))
        return PROFILE

    hub = MemoryHub(get_profile=opening())
    recollection = MemoryRecall(hub, seconds=0.05, first_seconds=30)
    asyncio.get_running_loop().call_later(0.2, opened.set)
    assert (await recollection.recall(brief("hello"), "hello")).profile.persona() == {"name": "Nell"}
    hub.answers["get_profile"] = asyncio.sleep(60)
    assert (await recollection.recall(brief("hello"), "hello")).trouble == (f"{GET_PROFILE}: too slow",)


class OwnProfileOnly(MemoryHub):
    """A hub that refuses this person the profile, and a search that would bring it along."""

    async def call(self, call: ToolCall, user_id: str) -> ToolResult:
        if call.name == "memory_get_profile" or call.arguments.get("include_profile"):
            return ToolResult.failure(ErrorBody(code="not_allowed", message="ada may not use it."))
        return await super().call(call, user_id)


@pytest.mark.req("CTX-01", "POL-01")
async def test_a_person_who_may_not_have_the_profile_still_has_their_memories() -> None:
    hub = OwnProfileOnly(get_profile=PROFILE, retrieve_memories={"facts": [FACT]})
    found = await MemoryRecall(hub).recall(brief("Where do I live?"), "Where do I live?")
    assert ([memory.fact for memory in found.memories], found.profile.content) == ([FACT["fact"]], {})
