"""A call that is queued is judged, and asked about, as the call it is (POL-03, RTR-05)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, cast

from annabelle.core.errors import RetryByModel
from annabelle.core.ports import Judge
from annabelle.core.tools import CallContext, JsonObject, ToolSpec
from annabelle.core.trust import Decision
from annabelle.hub.subagents.brief import NEVER
from annabelle.toolbox.native import NATIVE

QUEUE: Final = "queue_task"


def call_in(arguments: JsonObject) -> tuple[str, JsonObject]:
    """The tool and the arguments that are to be queued; RetryByModel says why there are none."""
    action = cast("JsonObject", arguments["action"])
    if action["type"] != "tool_call":
        raise RetryByModel(
            f"A task of the type {action['type']} can not be queued.", hint="Use the type tool_call, one call per task."
        )
    tool = action.get("toolName")
    if not tool or tool in NEVER:
        raise RetryByModel(
            f"{tool} can not be queued." if tool else "action.toolName is missing.", hint="Name the tool to call."
        )
    return str(tool), cast("JsonObject", action.get("parameters") or {})


@dataclass(frozen=True, slots=True)
class QueueJudge:
    """The question is asked before the call is queued, while the person is there; a yes to that is one to the call.

    Of what was allowed then and needs a yes by the time it is made, the task asks itself (`approvals.queued`).
    `tools` are those the caller may use, `check` raises what a call would be refused with: about a call that could not
    be made nobody is asked.
    """

    inner: Judge
    tools: Callable[[CallContext], Sequence[ToolSpec]]
    check: Callable[[str, JsonObject, CallContext], None]

    async def judge(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> Decision:
        if tool.name != QUEUE or tool.server != NATIVE:
            return await self.inner.judge(tool, arguments, context)
        try:
            name, handed = call_in(arguments)
        except RetryByModel:
            return Decision()  # the queue says so itself
        spec = next((one for one in self.tools(context) if one.name == name), None)
        if spec is None:
            return Decision()  # likewise
        decision = await self.inner.judge(spec, handed, context)
        if decision.verdict != "ask":
            return decision.model_copy(update={"labels": ()})
        self.check(name, handed, context)
        reasons = (f"{name} is to be called in the background.", *decision.reasons)
        return decision.model_copy(update={"reasons": reasons, "labels": ()})
