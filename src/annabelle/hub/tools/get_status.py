"""`get_status`: how Annabelle herself is doing, in words an agent can pass on."""

from __future__ import annotations

from collections.abc import Callable

from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.hub.status import HubStatus
from annabelle.toolbox.native import NativeTool

_SCHEMA: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}


def get_status_tool(status: Callable[[], HubStatus]) -> NativeTool:
    async def tell(_arguments: JsonObject, _context: CallContext) -> ToolResult:
        now = status()
        down = [server.name for server in now.servers if not server.available]
        lines = [
            f"Annabelle {now.version} is {now.status}, up for {now.uptime_seconds:.0f} s.",
            f"{now.tool_count} tools; servers: {len(now.servers) - len(down)} up"
            + (f", down: {', '.join(down)}." if down else "."),
            "Agents: " + ", ".join(f"{a.agent_id} ({'paused' if a.paused else a.state})" for a in now.agents) + ".",
            *(f"{notice.level}: {notice.text}" for notice in now.notices if notice.level != "info"),
        ]
        structured: JsonObject = now.model_dump(mode="json", by_alias=True, exclude={"address"})
        return ToolResult(text="\n".join(lines), structured=structured)

    annotations = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
    return NativeTool(
        "get_status", "How Annabelle is doing: version, servers, agents, troubles.", _SCHEMA, tell, annotations
    )
