"""Parks a turn whose calls wait for the person: all it needs to go on is written down, and nothing runs (POL-03)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict
from pydantic_ai.messages import ModelRequest, ToolReturnPart

from annabelle.core.contract import ParkedCall, ParkedTurn, TurnBrief, Usage
from annabelle.core.tools import ToolResult
from annabelle.thinker.loop.calls import PlannedCall
from annabelle.thinker.loop.deeds import Deed
from annabelle.thinker.loop.limits import GATHERED_CHARS
from annabelle.thinker.loop.model_step import dump_message
from annabelle.thinker.loop.progress import Progress
from annabelle.thinker.loop.repetition import Run


class Counters(BaseModel):
    """How far the turn had come: limits count on from here. The time until the answer is in none of them (POL-07)."""

    model_config = ConfigDict(frozen=True)

    step: int = 0
    tool_calls: int = 0
    mistakes: int = 0
    seconds: float = 0.0
    usage: Usage = Usage()
    tools_used: tuple[str, ...] = ()
    deeds: tuple[Deed, ...] = ()
    second_chance: bool = False
    unknown_outcomes: tuple[str, ...] = ()
    last_text: str = ""
    last_result: str = ""
    repetition: Run = Run()
    offered: tuple[str, ...] = ()
    """The tools the model had, those it found on the way too."""
    records: tuple[str, ...] = ()
    """The messages under which the session keeps this turn so far: one for each time it was parked."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The calls of a step that have no result yet, what was asked about some of them, and the results of the others."""

    calls: Sequence[PlannedCall]
    questions: Mapping[str, ToolResult]
    """By the model's id of the call."""
    answered: Sequence[ToolReturnPart]

    @property
    def text(self) -> str:
        """What the person reads: the questions as the hub wrote them."""
        return "\n\n".join(dict.fromkeys(question.text for question in self.questions.values()))


def parked_turn(brief: TurnBrief, progress: Progress, left: Unanswered, offered: Sequence[str]) -> ParkedTurn:
    """The turn as it stands; the last of its messages is the response whose calls wait."""
    return ParkedTurn(
        text=brief.text,
        messages=tuple(dump_message(message) for message in progress.messages),
        answered=dump_message(ModelRequest(parts=list(left.answered))) if left.answered else None,
        pending=tuple(_pending(call, left.questions.get(call.model_id)) for call in left.calls),
        progress=_counters(brief, progress, offered).model_dump(mode="json"),
    )


def counters_of(parked: ParkedTurn) -> Counters:
    return Counters.model_validate(parked.progress)


def _pending(call: PlannedCall, question: ToolResult | None) -> ParkedCall:
    asked = None if question is None else question.approval_id
    return ParkedCall(model_id=call.model_id, name=call.name, arguments=call.arguments, approval_id=asked)


def _counters(brief: TurnBrief, progress: Progress, offered: Sequence[str]) -> Counters:
    before = () if brief.resume is None else counters_of(brief.resume.parked).records
    return Counters(
        step=progress.step,
        tool_calls=progress.tool_calls,
        mistakes=progress.mistakes,
        seconds=progress.seconds,
        usage=progress.spent,
        tools_used=tuple(progress.tools_used),
        deeds=tuple(progress.deeds),
        second_chance=progress.second_chance,
        unknown_outcomes=tuple(progress.unknown_outcomes),
        last_text=progress.last_text,
        # One sign more than is ever shown: it tells that something was cut.
        last_result=progress.last_result[: GATHERED_CHARS + 1],
        repetition=progress.repetition.run(),
        offered=tuple(offered),
        records=(*before, brief.message_id),
    )
