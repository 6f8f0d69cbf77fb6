"""`get_tool_catalog`: which tools there are, by server and group."""

from __future__ import annotations

from annabelle.core.errors import RetryByModel
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.tools.first_line import first_line
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.native import OWN_WORDS, NativeTool

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"mcp_name": {"type": "string", "description": "Only the tools of this server"}},
    "additionalProperties": False,
}


def get_tool_catalog_tool(toolbox: Toolbox, agents: AgentManager) -> NativeTool:
    """The listing an agent sees is the one it may use."""

    async def list_tools(arguments: JsonObject, context: CallContext) -> ToolResult:
        by_server: dict[str, list[JsonObject]] = {}
        for tool in toolbox.tools(agents.policy_of(context)).tools:
            entry: JsonObject = {"name": tool.name, "group": tool.group, "description": first_line(tool.description)}
            by_server.setdefault(tool.server, []).append(entry)
        wanted = arguments.get("mcp_name")
        if isinstance(wanted, str):
            if wanted not in by_server:
                retry = RetryByModel(
                    f"There is no server {wanted}.", hint=f"There are: {', '.join(sorted(by_server))}."
                )
                return ToolResult.failure(retry.body(context.trace_id))
            by_server = {wanted: by_server[wanted]}
        lines = [
            f"{server}:\n" + "\n".join(f"- {tool['name']}: {tool['description']}" for tool in tools)
            for server, tools in sorted(by_server.items())
        ]
        return ToolResult(text="\n\n".join(lines) or "There are no tools.", structured={"servers": by_server})

    annotations = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
    return NativeTool(
        "get_tool_catalog", "List the tools there are, by server.", _SCHEMA, list_tools, annotations, scan=OWN_WORDS
    )
