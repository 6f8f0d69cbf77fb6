"""What the hub records of tool calls: one effect per call id (DUR-03), and where content came from (TRU-03)."""

from __future__ import annotations

from sqlalchemy import Connection

from annabelle.core.errors import OutcomeUnknown
from annabelle.core.failpoints import failpoint
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.core.trust import Provenance
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
    """Keeps calls in the hub's database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, call: JournalledCall) -> JournalState:
        """Write the call down as started, or say what became of it."""
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
        """Whether a call of this id was begun, by this process or one before it."""
        return await self._database.read(lambda conn: tool_calls.is_known_call(conn, call_id))

    async def finish(self, call_id: str, result: ToolResult) -> None:
        kept = result.model_dump(mode="json", exclude_defaults=True)
        await self._database.write(
            lambda conn: tool_calls.finish_call(conn, call_id, kept, result.trust, result.labels)
        )
        failpoint("hub.after_call")

    async def mark_unknown(self, call_id: str) -> None:
        """Keep that the outcome is not known; whoever asks again is told so."""
        kept = _UNKNOWN.model_dump(mode="json", exclude_defaults=True)
        await self._database.write(lambda conn: tool_calls.mark_call_unknown(conn, call_id, kept))


async def label_provenance(
    database: Database, context: CallContext, tool: ToolSpec | None, arguments: JsonObject
) -> CallContext:
    """The context of an agent's call with what is known of its content; people speak for themselves."""
    message_id = context.message_id
    if context.caller != "agent" or message_id is None:
        return context.model_copy(update={"provenance": Provenance()})
    if tool is not None and tool.annotations.read_only:
        return context  # nothing is written down, and every turn begins with two of these

    def load_provenance(conn: Connection) -> Provenance:
        origins = tool_calls.list_untrusted_tools(conn, message_id)
        if not origins:
            return Provenance()
        texts = collect_free_texts(tool.input_schema if tool is not None else {}, arguments)
        return provenance_of(origins, texts, tool_calls.list_person_words(conn, message_id))

    return context.model_copy(update={"provenance": await database.read(load_provenance)})


async def note_foreign_content(database: Database, context: CallContext, tool: str, result: ToolResult) -> None:
    """Remember foreign content that was seen by a call without an id: the journal knows of the others."""
    if context.caller != "agent" or context.call_id is not None or context.message_id is None:
        return
    if result.trust == "trusted" or result.is_error:
        return
    seen = SeenToolResult(tool, context.user_id, context.agent_id, context.message_id)
    await database.write(lambda conn: tool_calls.note_untrusted(conn, seen))
