"""Makes a call of an agent only if policy allows it or the person said yes to exactly this call (POL-02, POL-03)."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.core.errors import NotAllowed
from annabelle.core.ports import ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.toolbox.doors import Doors


@dataclass(frozen=True, slots=True)
class Approved:
    """People call tools themselves, and housework of hub and thinker has no call id: neither is asked about."""

    inner: ToolClient
    doors: Doors

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        judge, desk = self.doors.judge, self.doors.desk
        if judge is None or context.caller != "agent" or context.call_id is None:
            return await self.inner.call(tool, arguments, context)
        decision = await judge.judge(tool, arguments, context)
        context = context.model_copy(update={"labels": decision.labels})
        why = " ".join(decision.reasons)
        if decision.verdict == "refuse":
            raise NotAllowed(f"{tool.name} was not called. {why}", hint="Tell the user; only they can change the rule.")
        if decision.verdict == "allow" or (desk is not None and await desk.granted(tool, arguments, context)):
            return await self.inner.call(tool, arguments, context)
        if desk is None or not context.askable:
            raise NotAllowed(
                f"{tool.name} needs the user's yes, and nobody can be asked here. {why}",
                hint="Report what should be done; whoever talks with the user can ask.",
            )
        return await desk.ask(tool, arguments, context, decision)
