"""The way from a plain name into the memory: the same checks, owner and labels as for the tool behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from annabelle.core.errors import AnnabelleError
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.provenance import labelled
from annabelle.store.database import Database
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.native import NativeTool

_SERVER = "memory"


class PlainMemory:
    """Calls a tool of the memory for whoever called the plain one."""

    def __init__(self, toolbox: Toolbox, agents: AgentManager, database: Database) -> None:
        self._toolbox, self._agents, self._database = toolbox, agents, database

    async def call(self, name: str, arguments: JsonObject, context: CallContext) -> ToolResult:
        """As the caller, with its policy; the call has an id of its own, so that a repeat is found there too."""
        policy = self._agents.policy_of(context)
        own = None if context.call_id is None else f"{context.call_id}:{name}"
        inner = context.model_copy(update={"call_id": own})
        tools = self._toolbox.tools(policy).tools
        spec = next((tool for tool in tools if tool.name == name), None)
        inner = await labelled(self._database, inner, spec, arguments)
        try:
            result = await self._toolbox.call(name, arguments, inner, policy)
        except AnnabelleError as error:
            return ToolResult.failure(error.body(context.trace_id))
        # Said outright: what a tool of the hub leaves unsaid is taken for the hub's own words.
        return result.model_copy(update={"trust": result.trust})


def offer_with_memory(toolbox: Toolbox, plain: Sequence[NativeTool]) -> None:
    """Offer the plain tools as soon as there is a memory behind them, and not before."""
    offered = False

    def look() -> None:
        nonlocal offered
        if not offered and any(tool.server == _SERVER for tool in toolbox.tools(caller="hub").tools):
            offered = True
            toolbox.add_native(plain)

    def soon(_version: str) -> None:
        # After the change was told to all: what they are told next is newer.
        asyncio.get_running_loop().call_soon(look)

    toolbox.on_change(soon)
