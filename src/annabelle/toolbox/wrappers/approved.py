"""Makes a call of an agent only if policy allows it or the person said yes to exactly this call (POL-02, POL-03)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from annabelle.core.errors import NotAllowed
from annabelle.core.ports import ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.core.trust import Decision
from annabelle.toolbox.doors import Doors


@dataclass(frozen=True, slots=True)
class Approved:
    """People call tools themselves: that is their yes. What an agent's process looks up for itself has no call id.

    `begun` tells whether a call id was let through before: a repeat after a crash finds out what became of the call,
    whatever policy says by now.
    """

    inner: ToolClient
    doors: Doors
    begun: Callable[[str], Awaitable[bool]]

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        judge, desk, call_id = self.doors.judge, self.doors.desk, context.call_id
        if judge is None or context.caller != "agent" or context.judged:
            return await self.inner.call(tool, arguments, context)
        if call_id is None:
            if not tool.annotations.read_only:
                raise NotAllowed(f"{tool.name} does something, so an agent calls it with a call_id.", field="call_id")
            return await self.inner.call(tool, arguments, context)
        decision = await judge.judge(tool, arguments, context)
        context = context.model_copy(update={"labels": decision.labels, "judged": True})
        if decision.verdict == "allow" or await self.begun(call_id):
            return await self.inner.call(tool, arguments, context)
        why = " ".join(decision.reasons)
        if decision.verdict == "refuse":
            self._note("refused", tool, context, decision)
            raise NotAllowed(f"{tool.name} was not called. {why}", hint="Tell the user; only they can change the rule.")
        if desk is not None and await desk.granted(tool, arguments, context):
            return await self.inner.call(tool, arguments, context)
        if desk is None or not context.askable:
            self._note("not_askable", tool, context, decision)
            raise NotAllowed(
                f"{tool.name} needs the user's yes, and nobody can be asked here. {why}",
                hint="Report what should be done; whoever talks with the user can ask.",
            )
        return await desk.ask(tool, arguments, context, decision)

    def _note(self, event: str, tool: ToolSpec, context: CallContext, decision: Decision) -> None:
        if self.doors.audit is not None:
            facts: JsonObject = {
                "event": event,
                "tool": tool.name,
                "agent_id": context.agent_id,
                "user_id": context.user_id,
                "call_id": context.call_id,
                "classes": list(decision.classes),
            }
            self.doors.audit.note("approval", facts, context.trace_id)
