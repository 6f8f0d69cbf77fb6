"""One tool call: planned from the model's response and sent under an id that makes a repeat after a crash harmless
(DUR-02, DUR-03).
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pydantic_ai.messages import ModelResponse, ToolCallPart

from annabelle.core.contract import ToolCall, TurnBrief
from annabelle.core.errors import ErrorBody, HubUnreachable
from annabelle.core.failpoints import failpoint
from annabelle.core.tools import JsonObject, ToolResult
from annabelle.thinker import failpoints
from annabelle.thinker.loop.arguments import NormalisedArguments, normalise_arguments
from annabelle.thinker.loop.deps import ThinkerDeps, TurnScope
from annabelle.thinker.selection.selection import ToolSelection


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call. `call_id` identifies it for the hub, `model_id` for the model."""

    index: int
    call_id: str
    model_id: str
    name: str
    arguments: JsonObject
    problem: ErrorBody | None = None
    normalised: tuple[str, ...] = ()
    """Names of the arguments that were normalised."""
    recovered: bool = False
    """The model wrote the call into its text instead of making it."""
    remark: str = ""
    """The person's note about it, which the model reads with the result."""


def plan_calls(
    response: ModelResponse, brief: TurnBrief, step: int, selection: ToolSelection, *, recovered: bool = False
) -> list[PlannedCall]:
    """All calls of a response, in order, with normalised arguments."""
    parts = [part for part in response.parts if isinstance(part, ToolCallPart)]
    calls: list[PlannedCall] = []
    for index, part in enumerate(parts):
        problem = None
        try:
            arguments: JsonObject = part.args_as_dict(raise_if_invalid=True)
        except (ValueError, AssertionError):
            arguments = {}
            problem = ErrorBody(
                code="invalid_arguments",
                message=f"The arguments of {part.tool_name} are not a JSON object.",
                hint="Call it again with one JSON object as arguments.",
            )
        spec = selection.spec(part.tool_name)
        normalised = NormalisedArguments(arguments)
        if spec is not None and problem is None:
            normalised = normalise_arguments(arguments, spec.input_schema, brief.chat_id)
        calls.append(
            PlannedCall(
                index=index,
                call_id=f"{brief.message_id}:{step}:{index}",
                model_id=part.tool_call_id,
                name=part.tool_name,
                arguments=normalised.arguments,
                problem=problem,
                normalised=normalised.changed,
                recovered=recovered,
            )
        )
    return calls


def all_read_only(calls: Sequence[PlannedCall], selection: ToolSelection) -> bool:
    specs = [selection.spec(call.name) for call in calls]
    return all(spec is not None and spec.annotations.read_only for spec in specs)


def unknown_tool_error(name: str, selection: ToolSelection) -> ErrorBody:
    """What the model reads when it calls a tool that does not exist. It may call any that does, selected or not."""
    known = [tool.name for tool in (*selection.tools, *selection.others)]
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(close)}?" if close else "Use only the tools you were given."
    return ErrorBody(code="unknown_tool", message=f"There is no tool named {name}.", hint=hint)


@dataclass(frozen=True, slots=True)
class CompletedCall:
    """A finished call, as the step records it. `seconds` counts towards the turn's time, also after a replay."""

    result: ToolResult
    seconds: float

    def to_json(self) -> JsonObject:
        return {"result": self.result.model_dump(mode="json", exclude_none=True), "seconds": round(self.seconds, 3)}

    @classmethod
    def from_json(cls, recorded: JsonObject) -> CompletedCall:
        return cls(ToolResult.model_validate(recorded["result"]), cast("float", recorded["seconds"]))


async def call_tool(deps: ThinkerDeps, scope: TurnScope, call: PlannedCall, selection: ToolSelection) -> CompletedCall:
    """Make the call. Every failure becomes a result for the model, never an exception."""
    failpoint(failpoints.BEFORE_TOOL)
    started = time.monotonic()
    if call.normalised:
        fields = list(call.normalised)
        deps.trace.write("tool.normalised", {"call_id": call.call_id, "tool": call.name, "fields": fields})
    if call.problem is not None:
        result = ToolResult.failure(call.problem)
    elif selection.spec(call.name) is None:
        result = ToolResult.failure(unknown_tool_error(call.name, selection))
    elif (local := scope.local_tools.get(call.name)) is not None:
        result = await local.call(call.arguments)
    else:
        request = ToolCall(
            name=call.name, arguments=call.arguments, call_id=call.call_id, message_id=scope.brief.message_id
        )
        try:
            result = await deps.hub.call(request, scope.brief.user_id)
        except HubUnreachable as error:
            # The request may have reached the hub.
            result = ToolResult.failure(error.body().model_copy(update={"code": "outcome_unknown"}))
    return _record_call(deps, call, result, started)


def _record_call(deps: ThinkerDeps, call: PlannedCall, result: ToolResult, started: float) -> CompletedCall:
    seconds = time.monotonic() - started
    milliseconds = result.duration_ms or round(seconds * 1000, 1)
    code = result.error.code if result.error else None
    deps.trace.write(
        "tool.returned", {"call_id": call.call_id, "tool": call.name, "error": code, "duration_ms": milliseconds}
    )
    failpoint(failpoints.AFTER_TOOL)
    return CompletedCall(result.model_copy(update={"duration_ms": milliseconds}), seconds)
