"""The hub's memory of tool calls, so that one call id has one effect, also over crashes (DUR-03)."""

from __future__ import annotations

from annabelle.core.errors import OutcomeUnknown
from annabelle.core.failpoints import failpoint
from annabelle.core.tools import ToolResult
from annabelle.store import tool_calls
from annabelle.store.database import Database
from annabelle.store.tool_calls import NewCall
from annabelle.toolbox.journal import Begun, JournalledCall

_UNKNOWN = ToolResult.failure(
    OutcomeUnknown(
        "This call was under way when a process died; nobody knows whether it took effect.",
        hint="Do not repeat it unasked: look whether it happened, or tell the user.",
    ).body()
)


class StoredJournal:
    """Keeps calls in the hub's database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, call: JournalledCall) -> Begun:
        """Write the call down as started, or say what became of it."""
        failpoint("hub.before_call")
        context = call.context
        new = NewCall(
            call_id=call.call_id,
            tool=call.tool,
            arguments_hash=call.arguments_hash,
            user_id=context.user_id,
            agent_id=context.agent_id,
            message_id=context.message_id,
            trace_id=context.trace_id,
        )
        begun = await self._database.write(lambda conn: tool_calls.begin(conn, new))
        result = ToolResult.model_validate(begun.result) if begun.result is not None else None
        return Begun(begun.state, result)

    async def known(self, call_id: str) -> bool:
        """Whether a call of this id was begun, by this process or one before it."""
        return await self._database.read(lambda conn: tool_calls.known(conn, call_id))

    async def finish(self, call_id: str, result: ToolResult) -> None:
        kept = result.model_dump(mode="json", exclude_defaults=True)
        await self._database.write(lambda conn: tool_calls.finish(conn, call_id, kept, result.trust, result.labels))
        failpoint("hub.after_call")

    async def mark_unknown(self, call_id: str) -> None:
        """Keep that the outcome is not known; whoever asks again is told so."""
        kept = _UNKNOWN.model_dump(mode="json", exclude_defaults=True)
        await self._database.write(lambda conn: tool_calls.mark_unknown(conn, call_id, kept))
