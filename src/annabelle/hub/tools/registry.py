"""Registers the tools that the hub serves itself (RTR-05)."""

from __future__ import annotations

from annabelle.embeddings.metering import EmbeddingMeter
from annabelle.hub.context import HubContext
from annabelle.hub.tasks.background_calls import BackgroundCalls
from annabelle.hub.tools.chat import get_status_tool, propose_rule_tool, send_message_tools
from annabelle.hub.tools.contacts import find_contact_tool
from annabelle.hub.tools.goals import goal_tools
from annabelle.hub.tools.memory import PlainMemory, register_with_memory, search_memories_tool, store_fact_tool
from annabelle.hub.tools.skills import skill_tools
from annabelle.hub.tools.tasks import get_job_status_tool, queue_task_tool, spawn_subagent_tool
from annabelle.hub.tools.tool_search import ToolSearch, get_tool_catalog_tool


def register_native_tools(hub: HubContext, calls: BackgroundCalls) -> None:
    """Register the hub's own tools now, and the plain memory tools once there is a memory server."""
    toolbox, agents, tasks = hub.toolbox, hub.agents.registry, hub.services.tasks
    sending = send_message_tools(hub.storage.events, hub.base)
    own = [get_status_tool(hub.status), get_tool_catalog_tool(toolbox, agents), *sending]
    handing_on = [spawn_subagent_tool(tasks), queue_task_tool(tasks, calls, toolbox), get_job_status_tool(tasks)]
    searching = ToolSearch(
        toolbox, agents, hub.base.settings, hub.base.home, EmbeddingMeter(hub.services.upkeep.ledger, "hub")
    ).tool()
    ruling = propose_rule_tool(hub.services.rules)
    plain = PlainMemory(toolbox, agents, hub.storage.database)
    finding = [searching, find_contact_tool(plain, toolbox, agents, hub.tool_access)]
    toolbox.add_native(
        [*own, *handing_on, *skill_tools(hub.services.skills), ruling, *hub.services.memory.native_tools(), *finding]
    )
    toolbox.add_native(goal_tools(hub.services.goals, hub.storage.events, toolbox, agents))
    register_with_memory(toolbox, [store_fact_tool(plain), search_memories_tool(plain)])
