"""Takes a parked turn up again with what the person answered (POL-03).

The step that waited is finished first: calls with a yes are made with the arguments the person saw or wrote, under ids
of the message that carries the turn on. A call with no yes is answered for the model without being made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart

from annabelle.core.contract import Answered, ParkedCall, Resumption, TurnBrief
from annabelle.core.errors import ErrorBody
from annabelle.thinker.loop.calls import PlannedCall
from annabelle.thinker.loop.model_step import load_message
from annabelle.thinker.loop.parking import counters_of
from annabelle.thinker.loop.progress import Progress
from annabelle.thinker.loop.repetition import Repetition
from annabelle.thinker.select.selector import Selection

DENIED = "denied"
_CHANGED = "(The user changed the arguments of this call before they said yes.)"
_BEHIND_A_NO = ErrorBody(
    code=DENIED,
    message="Not done: it came after a call that the user did not say yes to.",
    hint="Make it again only if it is still right without that call.",
)


def restored(resume: Resumption) -> Progress:
    """How far the turn had come, with the arguments of its calls as the person changed them."""
    counters = counters_of(resume.parked)
    return Progress(
        messages=_messages(resume),
        step=counters.step,
        tool_calls=counters.tool_calls,
        mistakes=counters.mistakes,
        seconds=counters.seconds,
        earlier=counters.usage,
        tools_used=list(counters.tools_used),
        deeds=list(counters.deeds),
        second_chance=counters.second_chance,
        unknown_outcomes=list(counters.unknown_outcomes),
        last_text=counters.last_text,
        last_result=counters.last_result,
        repetition=Repetition(counters.repetition),
    )


def answered_results(resume: Resumption) -> list[ToolReturnPart]:
    """The results of those calls of the waiting step that were made before it was parked."""
    request = None if resume.parked.answered is None else load_message(resume.parked.answered)
    return [part for part in request.parts if isinstance(part, ToolReturnPart)] if request is not None else []


def pending_calls(brief: TurnBrief, resume: Resumption) -> list[PlannedCall]:
    """The calls that have no result yet, in their order. One with a problem is not made, and the model reads why."""
    answers = {answer.approval_id: answer for answer in resume.answers}
    step = counters_of(resume.parked).step
    calls: list[PlannedCall] = []
    refused = False
    for index, call in enumerate(resume.parked.pending):
        answer = None if call.approval_id is None else answers.get(call.approval_id)
        problem = None
        if call.approval_id is not None:
            problem = _no(answer)
            refused = refused or problem is not None
        elif refused:
            problem = _BEHIND_A_NO
        calls.append(
            PlannedCall(
                index=index,
                call_id=f"{brief.message_id}:{step}:{index}",
                model_id=call.model_id,
                name=call.name,
                arguments=_arguments(call, answer),
                problem=problem,
                remark="" if answer is None or problem is not None else _remark(answer),
            )
        )
    return calls


def selected_again(selection: Selection, resume: Resumption) -> Selection:
    """The tools of the turn as it was, as far as there is room; those that wait always have it."""
    had = selection.with_found(counters_of(resume.parked).offered)
    return had.with_found(call.name for call in resume.parked.pending)


def parked_records(resume: Resumption) -> frozenset[str]:
    """The messages under which the session keeps this very turn so far."""
    return frozenset((resume.message_id, *counters_of(resume.parked).records))


def told(resume: Resumption) -> str:
    """What the session keeps in the place of words of the user."""
    names = {call.approval_id: call.name for call in resume.parked.pending if call.approval_id is not None}
    said = [_said(answer, names[answer.approval_id]) for answer in resume.answers if answer.approval_id in names]
    return f"({'; '.join(said) or 'The user did not answer'}.)"


def since_parked(resume: Resumption, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """What is new: the calls that waited with their results, and everything behind them."""
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


def _messages(resume: Resumption) -> list[ModelMessage]:
    messages = [load_message(message) for message in resume.parked.messages]
    last = messages[-1] if messages else None
    changed = {
        call.model_id: answer.arguments
        for call in resume.parked.pending
        for answer in resume.answers
        if answer.approval_id == call.approval_id and answer.verdict == "approved" and answer.arguments is not None
    }
    if isinstance(last, ModelResponse) and changed:
        # The model reads what was really called: it must not speak of what it wanted to call.
        parts = [
            replace(part, args=changed[part.tool_call_id])
            if isinstance(part, ToolCallPart) and part.tool_call_id in changed
            else part
            for part in last.parts
        ]
        messages[-1] = replace(last, parts=parts)
    return messages


def _arguments(call: ParkedCall, answer: Answered | None) -> dict[str, object]:
    if answer is None or answer.verdict != "approved" or answer.arguments is None:
        return call.arguments
    return answer.arguments


def _no(answer: Answered | None) -> ErrorBody | None:
    """Why a call that waited is not made; None when the person said yes."""
    if answer is None:
        return ErrorBody(code=DENIED, message="Not done: the question about this call was withdrawn.")
    if answer.verdict == "approved":
        return None
    if answer.verdict == "expired":
        return ErrorBody(code=DENIED, message="Not done: the user did not answer in time.")
    said = f"The user said no and added: {answer.note}" if answer.note else "The user said no."
    return ErrorBody(code=DENIED, message=said)


def _remark(answer: Answered) -> str:
    changed = _CHANGED if answer.arguments is not None else ""
    note = f"(The user said yes and added: {answer.note})" if answer.note else ""
    return " ".join(part for part in (changed, note) if part)


def _said(answer: Answered, tool: str) -> str:
    note = f" ({answer.note})" if answer.note else ""
    match answer.verdict:
        case "approved":
            return f"The user approved {tool}{' with changes' if answer.arguments is not None else ''}{note}"
        case "denied":
            return f"The user said no to {tool}{note}"
        case "expired":
            return f"The user did not answer in time about {tool}"
