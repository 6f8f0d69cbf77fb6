"""The tool calls a model asked for, read once and given the ids they keep over every replay."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from annabelle.core.contract import TurnBrief
from annabelle.core.errors import ErrorBody
from annabelle.core.tools import JsonObject
from annabelle.thinker.loop.normalise import Normalised, normalised
from annabelle.thinker.select.selector import Selection


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call. `call_id` is what the hub knows it by, `model_id` what the model does."""

    index: int
    call_id: str
    model_id: str
    name: str
    arguments: JsonObject
    problem: ErrorBody | None = None
    normalised: tuple[str, ...] = ()
    """The arguments that were brought into the shape the tool asks for."""
    recovered: bool = False
    """Whether the model wrote the call into its text instead of making it."""
    remark: str = ""
    """What the person had to say about it, for the model to read with the result."""


def planned_calls(
    response: ModelResponse, brief: TurnBrief, step: int, selection: Selection, *, recovered: bool = False
) -> list[PlannedCall]:
    """All calls of a response, in its order, with arguments as their tools want them."""
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
        shaped = Normalised(arguments)
        if spec is not None and problem is None:
            shaped = normalised(arguments, spec.input_schema, brief.chat_id)
        call_id = f"{brief.message_id}:{step}:{index}"
        calls.append(
            PlannedCall(
                index=index,
                call_id=call_id,
                model_id=part.tool_call_id,
                name=part.tool_name,
                arguments=shaped.arguments,
                problem=problem,
                normalised=shaped.changed,
                recovered=recovered,
            )
        )
    return calls


def all_read_only(calls: Sequence[PlannedCall], selection: Selection) -> bool:
    """Whether the order of these calls can not matter."""
    specs = [selection.spec(call.name) for call in calls]
    return all(spec is not None and spec.annotations.read_only for spec in specs)


def unknown_tool(name: str, selection: Selection) -> ErrorBody:
    """What the model reads when it makes a tool up."""
    close = difflib.get_close_matches(name, selection.names(), n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(close)}?" if close else "Use only the tools you were given."
    return ErrorBody(code="unknown_tool", message=f"There is no tool named {name}.", hint=hint)


def text_of(response: ModelResponse) -> str:
    return "".join(part.content for part in response.parts if isinstance(part, TextPart)).strip()
