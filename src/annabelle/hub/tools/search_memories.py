"""`search_memories`: what an agent remembers of its user, under a plain name (RTR-05)."""

from __future__ import annotations

from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.hub.tools.plain_memory import PlainMemory
from annabelle.toolbox.native import OWN_WORDS, NativeTool

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 2000},
        "limit": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5},
    },
    "required": ["query"],
    "additionalProperties": False,
}


def search_memories_tool(memory: PlainMemory) -> NativeTool:
    async def search(arguments: JsonObject, context: CallContext) -> ToolResult:
        return await memory.call("memory_retrieve_memories", {"limit": 5, **arguments}, context)

    annotations = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
    return NativeTool(
        "search_memories",
        "Search what you remember: facts and earlier conversations.",
        _SCHEMA,
        search,
        annotations,
        group="Memory",
        scan=OWN_WORDS,
    )
