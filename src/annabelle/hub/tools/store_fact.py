"""`store_fact`: an agent keeps a fact about its user, under a plain name (RTR-05)."""

from __future__ import annotations

from typing import get_args

from annabelle.core.memory import FactCategory
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.hub.tools.plain_memory import PlainMemory
from annabelle.toolbox.native import OWN_WORDS, NativeTool

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "fact": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "One fact, as a sentence"},
        "category": {"type": "string", "enum": list(get_args(FactCategory))},
    },
    "required": ["fact", "category"],
    "additionalProperties": False,
}


def store_fact_tool(memory: PlainMemory) -> NativeTool:
    async def store(arguments: JsonObject, context: CallContext) -> ToolResult:
        return await memory.call("memory_store_fact", arguments, context)

    annotations = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=False)
    return NativeTool(
        "store_fact",
        "Remember a fact about the user for later.",
        _SCHEMA,
        store,
        annotations,
        group="Memory",
        scan=OWN_WORDS,
    )
