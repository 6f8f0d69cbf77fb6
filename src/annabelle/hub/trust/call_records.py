"""Records tool calls, so each call id has one effect (DUR-03), and where content came from (TRU-03)."""

from __future__ import annotations

from sqlalchemy import Connection

from annabelle.core.errors import OutcomeUnknown
from annabelle.core.failpoints import failpoint
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.core.trust import OUTSIDE, Provenance
from annabelle.policy.provenance import collect_free_texts, provenance_of
from annabelle.store import tool_calls
from annabelle.store.database import Database
from annabelle.store.tool_calls import NewToolCall, SeenToolResult
from annabelle.toolbox.call_hooks import JournalledCall, JournalState

_UNKNOWN = ToolResult.failure(
    OutcomeUnknown(
        "This call was under way when a process died; nobody knows whether it took effect.",
        hint="Do not repeat it unasked: look whether it happened, or tell the user.",
    ).body()
)


class StoredCallJournal:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, call: JournalledCall) -> JournalState:
        """Record the call as started, or return the recorded state."""
        failpoint("hub.before_call")
        context = call.context
        new = NewToolCall(
            call_id=call.call_id,
            tool=call.tool,
            arguments_hash=call.arguments_hash,
            user_id=context.user_id,
            agent_id=context.agent_id,
            message_id=context.message_id,
            trace_id=context.trace_id,
        )
        begun = await self._database.write(lambda conn: tool_calls.begin_call(conn, new))
        result = ToolResult.model_validate(begun.result) if begun.result is not None else None
        return JournalState(begun.state, result)

    async def known(self, call_id: str) -> bool:
        """Whether this process or an earlier one started a call with this id."""
        return await self._database.read(lambda conn: tool_calls.is_known_call(conn, call_id))

    async def finish(self, call_id: str, result: ToolResult) -> None:
        kept = result.model_dump(mode="json", exclude_defaults=True)
        await self._database.write(
            lambda conn: tool_calls.finish_call(conn, call_id, kept, result.trust, result.labels)
        )
        failpoint("hub.after_call")

    async def mark_unknown(self, call_id: str) -> None:
        """Record that the outcome is unknown. A repeat of the call gets this answer."""
        kept = _UNKNOWN.model_dump(mode="json", exclude_defaults=True)
        await self._database.write(lambda conn: tool_calls.mark_call_unknown(conn, call_id, kept))


async def label_provenance(
    database: Database, context: CallContext, tool: ToolSpec | None, arguments: JsonObject
) -> CallContext:
    """Adds the provenance of an agent's arguments to its context. Other callers have none."""
    message_id = context.message_id
    if context.caller != "agent":
        return context.model_copy(update={"provenance": Provenance()})
    if message_id is None:
        return context.model_copy(update={"provenance": Provenance(trust="untrusted", origins=OUTSIDE)})
    if tool is not None and tool.annotations.read_only:
        return context  # it changes nothing, and every turn begins with two such calls

    def load_provenance(conn: Connection) -> Provenance:
        origins = tool_calls.list_untrusted_tools(conn, message_id)
        if not origins:
            return Provenance()
        texts = collect_free_texts(tool.input_schema if tool is not None else {}, arguments)
        return provenance_of(origins, texts, tool_calls.list_person_words(conn, message_id))

    return context.model_copy(update={"provenance": await database.read(load_provenance)})


async def note_foreign_content(database: Database, context: CallContext, tool: str, result: ToolResult) -> None:
    """Record foreign content seen by a call without an id. The journal records the others."""
    if context.caller != "agent" or context.call_id is not None or context.message_id is None:
        return
    if result.trust == "trusted" or result.is_error:
        return
    seen = SeenToolResult(tool, context.user_id, context.agent_id, context.message_id)
    await database.write(lambda conn: tool_calls.note_untrusted(conn, seen))
