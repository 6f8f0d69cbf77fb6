"""Parks a turn whose calls wait for the person, and resumes it with the answers (POL-03)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, ConfigDict
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

from annabelle.core.contract import AnsweredApproval, ParkedCall, ParkedTurn, Resumption, TokenUsage, TurnBrief
from annabelle.core.errors import ErrorBody
from annabelle.core.tools import ToolResult
from annabelle.thinker.loop.action_log import ToolAction
from annabelle.thinker.loop.call import PlannedCall
from annabelle.thinker.loop.model_call import dump_message, load_message
from annabelle.thinker.loop.turn_progress import SHOWN_RESULT_CHARS, RepetitionTracker, ToolRun, TurnProgress
from annabelle.thinker.selection.selection import ToolSelection


class ParkedCounters(BaseModel):
    """The counters limits go on from. The time until the answer is not counted (POL-07)."""

    model_config = ConfigDict(frozen=True)

    step: int = 0
    tool_calls: int = 0
    mistakes: int = 0
    seconds: float = 0.0
    usage: TokenUsage = TokenUsage()
    tools_used: tuple[str, ...] = ()
    deeds: tuple[ToolAction, ...] = ()
    second_chance: bool = False
    unknown_outcomes: tuple[str, ...] = ()
    last_text: str = ""
    last_result: str = ""
    repetition: ToolRun = ToolRun()
    offered: tuple[str, ...] = ()
    """The tools offered to the model, found ones included."""
    records: tuple[str, ...] = ()
    """Message ids of this turn's session records: one for each time it was parked."""


@dataclass(frozen=True, slots=True)
class UnansweredCalls:
    """The calls of a step without a result, the questions about some of them, and the results of the others."""

    calls: Sequence[PlannedCall]
    questions: Mapping[str, ToolResult]
    """By the model's id of the call."""
    answered: Sequence[ToolReturnPart]

    @property
    def text(self) -> str:
        """The questions for the person, as the hub wrote them."""
        return "\n\n".join(dict.fromkeys(question.text for question in self.questions.values()))


def park_turn(brief: TurnBrief, progress: TurnProgress, left: UnansweredCalls, offered: Sequence[str]) -> ParkedTurn:
    """The current state of the turn; its last message is the response whose calls wait."""
    return ParkedTurn(
        text=brief.text,
        messages=tuple(dump_message(message) for message in progress.messages),
        answered=dump_message(ModelRequest(parts=list(left.answered))) if left.answered else None,
        pending=tuple(_park_call(call, left.questions.get(call.model_id)) for call in left.calls),
        progress=_make_counters(brief, progress, offered).model_dump(mode="json"),
    )


def load_counters(parked: ParkedTurn) -> ParkedCounters:
    return ParkedCounters.model_validate(parked.progress)


def _park_call(call: PlannedCall, question: ToolResult | None) -> ParkedCall:
    asked = None if question is None else question.approval_id
    return ParkedCall(model_id=call.model_id, name=call.name, arguments=call.arguments, approval_id=asked)


def _make_counters(brief: TurnBrief, progress: TurnProgress, offered: Sequence[str]) -> ParkedCounters:
    before = () if brief.resume is None else load_counters(brief.resume.parked).records
    return ParkedCounters(
        step=progress.step,
        tool_calls=progress.tool_calls,
        mistakes=progress.mistakes,
        seconds=progress.seconds,
        usage=progress.spent,
        tools_used=tuple(progress.tools_used),
        deeds=tuple(progress.actions),
        second_chance=progress.second_chance,
        unknown_outcomes=tuple(progress.unknown_outcomes),
        last_text=progress.last_text,
        # One character more than is shown, so that a cut is noticed.
        last_result=progress.last_result[: SHOWN_RESULT_CHARS + 1],
        repetition=progress.repetition.to_run(),
        offered=tuple(offered),
        records=(*before, brief.message_id),
    )


DENIED = "denied"
_CHANGED = "(The user changed the arguments of this call before they said yes.)"
_AFTER_REFUSAL = ErrorBody(
    code=DENIED,
    message="Not done: it came after a call that the user did not say yes to.",
    hint="Make it again only if it is still right without that call.",
)


def restore_progress(resume: Resumption) -> TurnProgress:
    """The progress of the parked turn, with arguments as the person changed them."""
    counters = load_counters(resume.parked)
    return TurnProgress(
        messages=_restore_messages(resume),
        step=counters.step,
        tool_calls=counters.tool_calls,
        mistakes=counters.mistakes,
        seconds=counters.seconds,
        earlier=counters.usage,
        tools_used=list(counters.tools_used),
        actions=list(counters.deeds),
        second_chance=counters.second_chance,
        unknown_outcomes=list(counters.unknown_outcomes),
        last_text=counters.last_text,
        last_result=counters.last_result,
        repetition=RepetitionTracker(counters.repetition),
    )


def answered_results(resume: Resumption) -> list[ToolReturnPart]:
    """Results of the waiting step from before it was parked."""
    request = None if resume.parked.answered is None else load_message(resume.parked.answered)
    return [part for part in request.parts if isinstance(part, ToolReturnPart)] if request is not None else []


def plan_pending_calls(brief: TurnBrief, resume: Resumption) -> list[PlannedCall]:
    """The calls without a result, in order. One with a problem is not made, and the model reads why."""
    answers = {answer.approval_id: answer for answer in resume.answers}
    step = load_counters(resume.parked).step
    calls: list[PlannedCall] = []
    refused = False
    for index, call in enumerate(resume.parked.pending):
        answer = None if call.approval_id is None else answers.get(call.approval_id)
        problem = None
        if call.approval_id is not None:
            problem = _describe_refusal(answer)
            refused = refused or problem is not None
        elif refused:
            problem = _AFTER_REFUSAL
        calls.append(
            PlannedCall(
                index=index,
                call_id=f"{brief.message_id}:{step}:{index}",
                model_id=call.model_id,
                name=call.name,
                arguments=_final_arguments(call, answer),
                problem=problem,
                remark="" if answer is None or problem is not None else _describe_remark(answer),
            )
        )
    return calls


def restore_selection(selection: ToolSelection, resume: Resumption) -> ToolSelection:
    """Add the tools of the parked turn, as far as there is room; waiting calls always have room."""
    had = selection.with_found(load_counters(resume.parked).offered)
    return had.with_found(call.name for call in resume.parked.pending)


def parked_records(resume: Resumption) -> frozenset[str]:
    """Message ids of this turn's session records."""
    return frozenset((resume.message_id, *load_counters(resume.parked).records))


def describe_answers(resume: Resumption) -> str:
    """What the session stores instead of a user message."""
    names = {call.approval_id: call.name for call in resume.parked.pending if call.approval_id is not None}
    said = [
        _describe_answer(answer, names[answer.approval_id]) for answer in resume.answers if answer.approval_id in names
    ]
    return f"({'; '.join(said) or 'The user did not answer'}.)"


def messages_since_parked(resume: Resumption, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The calls that waited with their results, and all later messages."""
    place = len(resume.parked.messages)
    waited = {call.model_id for call in resume.parked.pending}
    new: list[ModelMessage] = []
    for message in messages[max(0, place - 1) : place + 1]:
        if isinstance(message, ModelResponse):
            calls = [part for part in message.parts if isinstance(part, ToolCallPart) and part.tool_call_id in waited]
            new.append(replace(message, parts=calls))
        else:
            results = [part for part in message.parts if isinstance(part, ToolReturnPart)]
            new.append(replace(message, parts=[part for part in results if part.tool_call_id in waited]))
    return [*new, *messages[place + 1 :]]


def _restore_messages(resume: Resumption) -> list[ModelMessage]:
    messages = [load_message(message) for message in resume.parked.messages]
    last = messages[-1] if messages else None
    changed = {
        call.model_id: answer.arguments
        for call in resume.parked.pending
        for answer in resume.answers
        if answer.approval_id == call.approval_id and answer.verdict == "approved" and answer.arguments is not None
    }
    if isinstance(last, ModelResponse) and changed:
        # The model must read what was really called.
        parts = [
            replace(part, args=changed[part.tool_call_id])
            if isinstance(part, ToolCallPart) and part.tool_call_id in changed
            else part
            for part in last.parts
        ]
        messages[-1] = replace(last, parts=parts)
    return messages


def _final_arguments(call: ParkedCall, answer: AnsweredApproval | None) -> dict[str, object]:
    if answer is None or answer.verdict != "approved" or answer.arguments is None:
        return call.arguments
    return answer.arguments


def _describe_refusal(answer: AnsweredApproval | None) -> ErrorBody | None:
    """Why a waiting call is not made; None if it was approved."""
    if answer is None:
        return ErrorBody(code=DENIED, message="Not done: the question about this call was withdrawn.")
    if answer.verdict == "approved":
        return None
    if answer.verdict == "expired":
        return ErrorBody(code=DENIED, message="Not done: the user did not answer in time.")
    said = f"The user said no and added: {answer.note}" if answer.note else "The user said no."
    return ErrorBody(code=DENIED, message=said)


def _describe_remark(answer: AnsweredApproval) -> str:
    changed = _CHANGED if answer.arguments is not None else ""
    note = f"(The user said yes and added: {answer.note})" if answer.note else ""
    return " ".join(part for part in (changed, note) if part)


def _describe_answer(answer: AnsweredApproval, tool: str) -> str:
    note = f" ({answer.note})" if answer.note else ""
    match answer.verdict:
        case "approved":
            return f"The user approved {tool}{' with changes' if answer.arguments is not None else ''}{note}"
        case "denied":
            return f"The user said no to {tool}{note}"
        case "expired":
            return f"The user did not answer in time about {tool}"
