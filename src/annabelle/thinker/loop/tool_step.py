"""One tool call: sent to the hub under an id that makes a repeat after a crash harmless (DUR-02, DUR-03)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import cast

from annabelle.core.contract import ToolCall
from annabelle.core.errors import HubUnreachable
from annabelle.core.failpoints import failpoint
from annabelle.core.tools import JsonObject, ToolResult
from annabelle.thinker import failpoints
from annabelle.thinker.loop.bench import Workbench
from annabelle.thinker.loop.calls import PlannedCall, unknown_tool
from annabelle.thinker.loop.scope import TurnScope
from annabelle.thinker.select.selector import Selection


@dataclass(frozen=True, slots=True)
class CallMade:
    """A finished call, as the step records it; `seconds` counts on the turn's clock, also after a replay."""

    result: ToolResult
    seconds: float

    def to_json(self) -> JsonObject:
        return {"result": self.result.model_dump(mode="json", exclude_none=True), "seconds": round(self.seconds, 3)}

    @classmethod
    def from_json(cls, recorded: JsonObject) -> CallMade:
        return cls(ToolResult.model_validate(recorded["result"]), cast("float", recorded["seconds"]))


async def call_tool(bench: Workbench, scope: TurnScope, call: PlannedCall, selection: Selection) -> CallMade:
    """Make the call. Whatever goes wrong comes back as a result for the model, never as an exception."""
    failpoint(failpoints.BEFORE_TOOL)
    started = time.monotonic()
    if call.normalised:
        fields = list(call.normalised)
        bench.trace.write("tool.normalised", {"call_id": call.call_id, "tool": call.name, "fields": fields})
    if call.problem is not None:
        result = ToolResult.failure(call.problem)
    elif selection.spec(call.name) is None:
        result = ToolResult.failure(unknown_tool(call.name, selection))
    else:
        if (local := scope.local_tools.get(call.name)) is not None:
            result = await local.call(call.arguments)
            return _traced(bench, call, result, started)
        request = ToolCall(
            name=call.name, arguments=call.arguments, call_id=call.call_id, message_id=scope.brief.message_id
        )
        try:
            result = await bench.hub.call(request, scope.brief.user_id)
        except HubUnreachable as error:
            # The request may have arrived before the hub went silent for good.
            unknown = error.body().model_copy(update={"code": "outcome_unknown"})
            result = ToolResult.failure(unknown)
    return _traced(bench, call, result, started)


def _traced(bench: Workbench, call: PlannedCall, result: ToolResult, started: float) -> CallMade:
    seconds = time.monotonic() - started
    milliseconds = result.duration_ms or round(seconds * 1000, 1)
    code = result.error.code if result.error else None
    bench.trace.write(
        "tool.returned", {"call_id": call.call_id, "tool": call.name, "error": code, "duration_ms": milliseconds}
    )
    failpoint(failpoints.AFTER_TOOL)
    return CallMade(result.model_copy(update={"duration_ms": milliseconds}), seconds)
