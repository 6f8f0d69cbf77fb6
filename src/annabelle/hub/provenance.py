"""Labels what an agent writes down with where it may have come from, and notes what foreign content it saw (TRU-03)."""

from __future__ import annotations

from sqlalchemy import Connection

from annabelle.core.memory import Provenance
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.policy.provenance import free_texts, provenance_of
from annabelle.store import recent_turns
from annabelle.store.database import Database
from annabelle.store.recent_turns import Seen


async def labelled(
    database: Database, context: CallContext, tool: ToolSpec | None, arguments: JsonObject
) -> CallContext:
    """The context of an agent's call with what is known of its content; people speak for themselves."""
    message_id = context.message_id
    if context.caller != "agent" or message_id is None:
        return context.model_copy(update={"provenance": Provenance()})
    if tool is not None and tool.annotations.read_only:
        return context  # nothing is written down, and every turn begins with two of these

    def look(conn: Connection) -> Provenance:
        origins = recent_turns.untrusted_tools(conn, message_id)
        if not origins:
            return Provenance()
        texts = free_texts(tool.input_schema if tool is not None else {}, arguments)
        return provenance_of(origins, texts, recent_turns.words(conn, message_id))

    return context.model_copy(update={"provenance": await database.read(look)})


async def noted(database: Database, context: CallContext, tool: str, result: ToolResult) -> None:
    """Remember foreign content that was seen by a call without an id: the journal knows of the others."""
    if context.caller != "agent" or context.call_id is not None or context.message_id is None:
        return
    if result.trust == "trusted" or result.is_error:
        return
    seen = Seen(tool, context.user_id, context.agent_id, context.message_id)
    await database.write(lambda conn: recent_turns.note_untrusted(conn, seen))
