"""A turn that waits: kept with its delivery, carried on by a message of its own once every question is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError
from sqlalchemy import Connection

from annabelle.core.contract import Answered, ParkedTurn, Resumption
from annabelle.core.errors import NotFound
from annabelle.core.messages import now
from annabelle.core.visible import visible
from annabelle.hub.approvals.question import question
from annabelle.store import approvals, decisions, parked_turns, threads, tool_calls
from annabelle.store.approvals import Approval
from annabelle.store.stored_message import StoredMessage

_OVER = "The question about {tools} was taken back or ran out before it could be shown. Nothing was done."
_SAID = {"approved": "Approved", "denied": "Denied"}


@dataclass(frozen=True, slots=True)
class Parked:
    """What a turn that waits leaves behind: the text the person reads, and the questions that are open.

    One that can not go on any more does not wait, and has its end in the text.
    """

    text: str
    questions: tuple[Approval, ...]
    waits: bool = True


def was_asked(conn: Connection, message: StoredMessage, turn: ParkedTurn) -> bool:
    """Whether the turn waits for something that was really asked in it."""
    return bool(_asked(conn, message, turn))


def park(conn: Connection, message: StoredMessage, turn: ParkedTurn) -> Parked:
    """Keep the turn of a message until its questions are answered.

    Those that were answered already, while the turn was still about to end, carry it on at once.
    """
    threads.touch(conn, message.thread_id, now())
    asked = _asked(conn, message, turn)
    dropped = [one.id for one in approvals.of_message(conn, message.id) if one not in asked]
    approvals.end(conn, dropped, "cancelled")  # what the turn does not wait for must not keep it waiting
    if any(one.state not in ("pending", "approved", "denied") for one in asked):
        approvals.end(conn, [one.id for one in asked], "cancelled")
        went_on(conn, message, over=True)
        return Parked(_OVER.format(tools=_tools(asked)), (), waits=False)
    parked_turns.keep(conn, message, decisions.root_of(message), turn.model_dump(mode="json"))
    went_on(conn, message, over=False)
    carry_on(conn, message)
    waiting = tuple(one for one in asked if one.state == "pending")
    return Parked(question(waiting) if waiting else _answers(asked), waiting)


def carry_on(conn: Connection, message: StoredMessage) -> StoredMessage | None:
    """The message that goes on with a parked turn; made once, when none of its questions waits any more."""
    asked = approvals.of_message(conn, message.id)
    answered = [one for one in asked if one.state in _SAID and one.resumed_by is None]
    if not answered or any(one.state == "pending" for one in asked):
        return None
    if parked_turns.get(conn, message.id) is None:
        return None
    going_on = decisions.add(conn, message, _answers(answered), answered[-1].decided_by or message.user_id)
    approvals.resumed(conn, message.id, going_on.id)
    return going_on


def resumption(conn: Connection, message: StoredMessage) -> Resumption | None:
    """What a thinker needs to go on for this message; None for a message that begins a turn."""
    parked_id = decisions.resumed_by(message)
    if parked_id is None:
        return None
    turn, root_id = parked_turns.get(conn, parked_id), decisions.root_of(message)
    answers = tuple(_answered(one) for one in approvals.of_root(conn, root_id) if one.resumed_by == message.id)
    try:
        if turn is None or not answers:
            raise NotFound("The turn that waited is not there any more.")
        return Resumption(message_id=root_id, parked=ParkedTurn.model_validate(turn), answers=answers)
    except ValidationError as error:
        raise NotFound("The turn that waited can not be read any more.", hint="Ask for it again.") from error


def settle(conn: Connection, message: StoredMessage) -> list[Approval]:
    """A turn is over and does not wait: no yes of it can be used any more. The questions nobody will hear back on."""
    unheard = [one for one in approvals.of_message(conn, message.id) if one.state in ("pending", "approved")]
    if unheard:
        approvals.end(conn, [one.id for one in unheard], "cancelled")
    went_on(conn, message, over=True)
    return unheard


def went_on(conn: Connection, message: StoredMessage, *, over: bool) -> None:
    """The parked turn that this message carried on has come to its next stop, or to its end."""
    parked_id = decisions.resumed_by(message)
    if parked_id is None:
        return
    for one in approvals.of_root(conn, decisions.root_of(message)):
        if one.state != "approved" or one.message_id == message.id:
            continue
        call_id = tool_calls.made(conn, message.id, one.digest)
        if call_id is not None:
            # Policy did not ask for the yes: a rule that was made along with it allows the call.
            approvals.spent(conn, one.id, call_id)
        elif over:
            approvals.end(conn, [one.id], "cancelled")
    parked_turns.remove(conn, parked_id)


def _asked(conn: Connection, message: StoredMessage, turn: ParkedTurn) -> list[Approval]:
    named = {call.approval_id for call in turn.pending}
    return [one for one in approvals.of_message(conn, message.id) if one.id in named]


def _answers(asked: list[Approval]) -> str:
    changes = {one.id: " with changes" if one.edited is not None else "" for one in asked}
    return "\n".join(f"{_SAID[one.state]}{changes[one.id]}: {visible(one.tool)}" for one in asked)


def _answered(one: Approval) -> Answered:
    verdict: Literal["approved", "denied"] = "approved" if one.state in ("approved", "used") else "denied"
    return Answered(approval_id=one.id, verdict=verdict, arguments=one.edited, note=one.note or "")


def _tools(asked: list[Approval]) -> str:
    return ", ".join(dict.fromkeys(visible(one.tool) for one in asked))
