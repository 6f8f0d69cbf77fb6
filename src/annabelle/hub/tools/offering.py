"""Offers the tools that the hub serves itself (RTR-05)."""

from __future__ import annotations

from annabelle.embeddings.books import Books
from annabelle.hub.services import Hub
from annabelle.hub.subagents.background import BackgroundCalls
from annabelle.hub.tools.find_contact import find_contact_tool
from annabelle.hub.tools.get_job_status import get_job_status_tool
from annabelle.hub.tools.get_status import get_status_tool
from annabelle.hub.tools.get_tool_catalog import get_tool_catalog_tool
from annabelle.hub.tools.plain_memory import PlainMemory, offer_with_memory
from annabelle.hub.tools.propose_rule import propose_rule_tool
from annabelle.hub.tools.queue_task import queue_task_tool
from annabelle.hub.tools.search_memories import search_memories_tool
from annabelle.hub.tools.search_tools import ToolSearch
from annabelle.hub.tools.send_message import send_message_tools
from annabelle.hub.tools.spawn_subagent import spawn_subagent_tool
from annabelle.hub.tools.store_fact import store_fact_tool


def offer_native_tools(hub: Hub, calls: BackgroundCalls) -> None:
    """Those that stand on nothing but the hub at once, the plain names of the memory when there is one."""
    toolbox, agents, tasks = hub.toolbox, hub.agents, hub.tasks
    own = [get_status_tool(hub.status), get_tool_catalog_tool(toolbox, agents), *send_message_tools(hub.events)]
    handing_on = [spawn_subagent_tool(tasks), queue_task_tool(tasks, calls, toolbox), get_job_status_tool(tasks)]
    searching = ToolSearch(toolbox, agents, hub.settings, hub.home, Books(hub.ledger, "hub")).tool()
    ruling = propose_rule_tool(hub.rules)
    plain = PlainMemory(toolbox, agents, hub.database)
    finding = [searching, find_contact_tool(plain, toolbox, agents, hub.people)]
    toolbox.add_native([*own, *handing_on, ruling, *hub.memory.native_tools(), *finding])
    offer_with_memory(toolbox, [store_fact_tool(plain), search_memories_tool(plain)])
