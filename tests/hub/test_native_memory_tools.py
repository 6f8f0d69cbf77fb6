"""The hub's plain tools: a search over what an agent may use, and two doors to the memory behind its checks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import cast

import pytest

from annabelle.core.home import Home
from annabelle.core.messages import OWNER
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.core.trust import Provenance
from annabelle.hub.base_setup import HubStart
from annabelle.hub.boot import assemble
from annabelle.hub.context import HubContext
from annabelle.hub.instance import bind_port
from annabelle.toolbox.catalogue import AgentPolicy, ToolOffer

_ANY: JsonObject = {"type": "object"}


class StandIn:
    """A memory server that says with what it was called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, JsonObject, CallContext]] = []

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        self.calls.append((tool.name, arguments, context))
        return ToolResult(text="done", structured={"trust": "untrusted"}, trust="untrusted")


@pytest.fixture
async def hub(home: Home) -> AsyncIterator[HubContext]:
    settings = Settings.model_validate({"annabelle_port": 0, "nursery_enabled": False, "thinker_warm_spare": False})
    with bind_port(0) as sock:
        async with AsyncExitStack() as stack:
            machine = await assemble(HubStart(home, settings, Redactor(), sock, None), stack)
            await machine.hub.agents.start()
            yield machine.hub


def memory_in(hub: HubContext) -> StandIn:
    stand_in = StandIn()
    annotations = ToolAnnotations(destructive=False, idempotent=True, open_world=False)
    hub.toolbox._catalogue.offer(  # pyright: ignore[reportPrivateUsage] - a server without a process
        "memory",
        [
            ToolOffer(
                ToolSpec(
                    name=f"memory_{name}", server="memory", original_name=name, description=said, input_schema=_ANY,
                    annotations=annotations.model_copy(update={"read_only": name.startswith("retrieve")}),
                ),
                stand_in,
                5.0,
                provenance=True,
            )
            for name, said in (("store_fact", "Remember a fact."), ("retrieve_memories", "Find memories."))
        ],
    )  # fmt: skip
    return stand_in


def context(hub: HubContext, **fields: str) -> CallContext:
    agent_id = hub.agents.registry.config.default.agent_id
    return CallContext(caller="agent", agent_id=agent_id, user_id=OWNER, **fields)  # type: ignore[arg-type]


def deny(hub: HubContext, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    def policy(_agent_id: str) -> AgentPolicy:
        return AgentPolicy(denied=(pattern,))

    monkeypatch.setattr(hub.agents.registry, "policy", policy)


def names(hub: HubContext) -> set[str]:
    return {tool.name for tool in hub.toolbox.tools(AgentPolicy()).tools}


async def call(hub: HubContext, name: str, arguments: JsonObject, **fields: str) -> ToolResult:
    asked = context(hub, **fields)
    assert asked.agent_id is not None
    return await hub.toolbox.call(name, arguments, asked, hub.agents.registry.policy(asked.agent_id))


@pytest.mark.req("RTR-05")
async def test_the_doors_are_offered_with_a_memory_and_not_without(hub: HubContext) -> None:
    assert "search_tools" in names(hub)
    assert not {"store_fact", "search_memories"} & names(hub)
    memory_in(hub)
    await asyncio.sleep(0)
    assert {"store_fact", "search_memories"} <= names(hub)


@pytest.mark.req("RTR-05")
async def test_a_fact_is_stored_as_the_caller_with_a_label(hub: HubContext) -> None:
    memory = memory_in(hub)
    await asyncio.sleep(0)
    result = await call(
        hub, "store_fact", {"fact": "Likes tea.", "category": "preference"}, call_id="c1", message_id="msg_1"
    )
    assert not result.is_error
    assert result.trust == "untrusted"  # what the memory says of it, not what the hub thinks of its own tools
    name, arguments, seen = memory.calls[0]
    assert (name, arguments) == ("memory_store_fact", {"fact": "Likes tea.", "category": "preference"})
    assert (seen.caller, seen.user_id, seen.provenance) == ("agent", OWNER, Provenance())
    again = await call(
        hub, "store_fact", {"fact": "Likes tea.", "category": "preference"}, call_id="c1", message_id="msg_1"
    )
    assert again.text == "done"
    assert len(memory.calls) == 1


@pytest.mark.req("RTR-05")
async def test_memories_are_searched_five_at_a_time(hub: HubContext) -> None:
    memory = memory_in(hub)
    await asyncio.sleep(0)
    result = await call(hub, "search_memories", {"query": "tea"})
    assert result.trust == "untrusted"
    assert memory.calls[0][:2] == ("memory_retrieve_memories", {"limit": 5, "query": "tea"})


@pytest.mark.req("RTR-05")
async def test_a_door_does_not_lead_past_a_policy(hub: HubContext, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = memory_in(hub)
    await asyncio.sleep(0)
    deny(hub, monkeypatch, "memory_*")
    result = await call(
        hub, "store_fact", {"fact": "Likes tea.", "category": "preference"}, call_id="msg_1:1:1", message_id="msg_1"
    )
    assert result.is_error
    assert memory.calls == []


@pytest.mark.req("RTR-05")
async def test_a_search_finds_what_the_agent_may_use_and_nothing_else(
    hub: HubContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_in(hub)
    await asyncio.sleep(0)
    found = await call(hub, "search_tools", {"query": "how is the system doing", "limit": 3})
    assert found.trust == "trusted"
    assert found.structured is not None
    tools = cast("list[JsonObject]", found.structured["tools"])
    assert len(tools) == 3
    assert tools[0].keys() == {"name", "description", "server"}
    assert "get_status" in [tool["name"] for tool in tools]
    deny(hub, monkeypatch, "get_status")
    found = await call(hub, "search_tools", {"query": "how is the system doing"})
    assert found.structured is not None
    assert "get_status" not in str(found.structured)
