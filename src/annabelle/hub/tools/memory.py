"""`store_fact` and `search_memories`: the memory server's tools under plain names (RTR-05)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import get_args

from annabelle.core.errors import AnnabelleError
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.core.trust import FactCategory
from annabelle.hub.agents.registry import AgentRegistry
from annabelle.hub.trust.call_records import label_provenance
from annabelle.store.database import Database
from annabelle.toolbox.catalogue import (
    OWN_WORDS,
    READS,
    WRITES_ONCE,
    NativeTool,
    native_tool,
    number_parameter,
    text_parameter,
)
from annabelle.toolbox.facade import Toolbox

_SERVER = "memory"


class PlainMemory:
    def __init__(self, toolbox: Toolbox, agents: AgentRegistry, database: Database) -> None:
        self._toolbox, self._agents, self._database = toolbox, agents, database

    async def call(self, name: str, arguments: JsonObject, context: CallContext) -> ToolResult:
        """Call a tool with the caller's policy. It gets its own call id, so that a repeat is recognized."""
        policy = self._agents.policy_of(context)
        own = None if context.call_id is None else f"{context.call_id}:{name}"
        inner = context.model_copy(update={"call_id": own})
        tools = self._toolbox.tools(policy).tools
        spec = next((tool for tool in tools if tool.name == name), None)
        inner = await label_provenance(self._database, inner, spec, arguments)
        try:
            result = await self._toolbox.call(name, arguments, inner, policy)
        except AnnabelleError as error:
            return ToolResult.failure(error.body(context.trace_id))
        # Set explicitly, because results of the hub's own tools count as trusted by default.
        return result.model_copy(update={"trust": result.trust})


def register_with_memory(toolbox: Toolbox, plain: Sequence[NativeTool]) -> None:
    offered = False

    def register_once() -> None:
        nonlocal offered
        if not offered and any(tool.server == _SERVER for tool in toolbox.tools(caller="hub").tools):
            offered = True
            toolbox.add_native(plain)

    def register_soon(_version: str) -> None:
        # Later, so that all listeners get this change before the next one.
        asyncio.get_running_loop().call_soon(register_once)

    toolbox.on_change(register_soon)


def store_fact_tool(memory: PlainMemory) -> NativeTool:
    @native_tool(
        "store_fact",
        "Remember a fact about the user for later.",
        {
            "fact": text_parameter(4000, "One fact, as a sentence"),
            "category": {"type": "string", "enum": list(get_args(FactCategory))},
        },
        required=("fact", "category"),
        annotations=WRITES_ONCE,
        group="Memory",
        scan=OWN_WORDS,
    )
    async def store_fact(arguments: JsonObject, context: CallContext) -> ToolResult:
        return await memory.call("memory_store_fact", arguments, context)

    return store_fact


def search_memories_tool(memory: PlainMemory) -> NativeTool:
    @native_tool(
        "search_memories",
        "Search what you remember: facts and earlier conversations.",
        {
            "query": text_parameter(2000),
            "limit": number_parameter(1, 20, 5),
        },
        required=("query",),
        annotations=READS,
        group="Memory",
        scan=OWN_WORDS,
    )
    async def search_memories(arguments: JsonObject, context: CallContext) -> ToolResult:
        return await memory.call("memory_retrieve_memories", {"limit": 5, **arguments}, context)

    return search_memories
