"""Calls and turns that wait for an approval, stored in the database (I-04)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, cast

from pydantic import ValidationError
from sqlalchemy import Connection

from annabelle.agents import find_kind
from annabelle.agents.kind import ParkedOutcome
from annabelle.core.contract import AnsweredApproval, ParkedTurn, Resumption
from annabelle.core.errors import NotAllowed, NotFound
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import now
from annabelle.core.ports import AuditTrail
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.text import escape_invisible
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.core.trust import PolicyDecision
from annabelle.hub.approvals.questions import (
    announce_task_question,
    find_background_task,
    render_questions,
    tell_task_question,
    was_granted_before,
)
from annabelle.store import approvals, message_state, messages, threads, tool_calls
from annabelle.store.approvals import Approval, ApprovalBinding, NewApproval
from annabelle.store.database import Database
from annabelle.store.messages import StoredMessage
from annabelle.toolbox.call_hooks import arguments_hash


@dataclass(frozen=True, slots=True)
class ApprovalStore:
    """Stores questions and answers, so that callers cannot forge approvals. `on_asked` schedules expiry."""

    database: Database
    redact: Redactor
    hours: float
    audit: AuditTrail | None = None
    on_asked: Callable[[], None] = lambda: None

    async def granted(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> bool:
        """Whether the person approved exactly this call. This call id uses the approval up.

        Approving the queueing of a background call also approves the call, with the arguments it was queued with.
        """
        call_id, task_id = context.call_id, find_background_task(context)
        if call_id is None or (context.message_id is None and task_id is None):
            return False
        if task_id is not None and await self.database.read(
            lambda conn: _was_queued_with_yes(conn, tool, arguments, context)
        ):
            return True

        def use(conn: Connection) -> str | None:
            return approvals.use_approval(conn, _bind_yes(conn, tool, arguments, context), call_id)

        approval_id = await self.database.write(use)
        if approval_id is None:
            return False
        failpoint("hub.after_grant")
        self._note("used", tool, context, approval_id)
        return True

    async def ask(
        self, tool: ToolSpec, arguments: JsonObject, context: CallContext, decision: PolicyDecision
    ) -> ToolResult:
        """Store the question. Repeating the call after a crash finds the same question."""
        call_id, thread_id, message_id = context.call_id, context.thread_id, context.message_id
        task_id = find_background_task(context)
        assert call_id is not None
        assert thread_id is not None
        assert message_id is not None or task_id is not None

        def write(conn: Connection) -> Approval:
            threads.touch_thread(conn, thread_id, now())
            bound = _bind_yes(conn, tool, arguments, context)
            if approvals.find_denied(conn, bound, call_id) is not None:
                raise NotAllowed(
                    f"The user said no to exactly this call of {tool.name}.", hint="Do not ask again; go on without it."
                )
            new = NewApproval(
                bound=bound,
                thread_id=thread_id,
                message_id=announce_task_question(conn, task_id, call_id).id if task_id else message_id or "",
                call_id=call_id,
                tool=tool.name,
                arguments=cast("JsonObject", self.redact.redact_data(arguments)),
                reasons=tuple(map(self.redact, decision.reasons)),
                expires_at=now() + timedelta(hours=self.hours),
            )
            asked = approvals.add_approval(conn, new)
            if task_id is not None:
                tell_task_question(conn, asked)
            return asked

        approval = await self.database.write(write)
        failpoint("hub.after_ask")
        if approval.tool != tool.name or approval.state in ("expired", "cancelled", "used"):
            raise NotAllowed(f"The question about {tool.name} was taken back.", hint="Go on without this call.")
        self._note("asked", tool, context, approval.id)
        self.on_asked()
        return ToolResult(text=render_questions([approval]), trust="trusted", source="own", approval_id=approval.id)

    def _note(self, event: str, tool: ToolSpec, context: CallContext, approval_id: str) -> None:
        if self.audit is not None:
            facts: JsonObject = {
                "event": event,
                "approval_id": approval_id,
                "tool": tool.name,
                "agent_id": context.agent_id,
                "user_id": context.user_id,
                "call_id": context.call_id,
            }
            self.audit.note("approval", facts, context.trace_id)


def _bind_yes(conn: Connection, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ApprovalBinding:
    task_id = find_background_task(context)
    return ApprovalBinding(
        root_id=_root_message_id(conn, context) if task_id is None else task_id,
        user_id=context.user_id,
        agent_id=context.agent_id or "",
        digest=arguments_hash(tool.name, arguments),
    )


def _root_message_id(conn: Connection, context: CallContext) -> str:
    assert context.message_id is not None
    message = messages.load_message(conn, context.message_id)
    if message.state != "running":
        # The turn was stopped during the call, so its questions and approvals are void.
        raise NotAllowed("The turn is over.")
    return message_state.root_message_id(message)


def _was_queued_with_yes(conn: Connection, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> bool:
    """Whether the person approved the queueing of this call, or an earlier attempt at it."""
    queued_as, task_id = context.queued_as or "", find_background_task(context) or ""
    digest = arguments_hash(tool.name, arguments)
    return approvals.was_approval_used(conn, queued_as, context.user_id) or was_granted_before(conn, task_id, digest)


_OVER = "The question about {tools} was taken back or ran out before it could be shown. Nothing was done."
_SAID = {"approved": "Approved", "denied": "Denied"}


def was_asked(conn: Connection, message: StoredMessage, turn: ParkedTurn) -> bool:
    """Whether the turn waits for questions that were really asked in it."""
    return bool(_asked_in_turn(conn, message, turn))


def park_turn(conn: Connection, message: StoredMessage, turn: ParkedTurn, channel: str) -> ParkedOutcome:
    """Store a turn until its questions, asked in a channel, are answered. If they already are, it resumes at once."""
    threads.touch_thread(conn, message.thread_id, now())
    asked = _asked_in_turn(conn, message, turn)
    dropped = [one.id for one in approvals.list_message_approvals(conn, message.id) if one not in asked]
    approvals.end_approvals(conn, dropped, "cancelled")  # a question the turn does not wait for must not block it
    if any(one.state not in ("pending", "approved", "denied") for one in asked):
        approvals.end_approvals(conn, [one.id for one in asked], "cancelled")
        note_resumed(conn, message, over=True)
        return ParkedOutcome(_OVER.format(tools=_tool_names(asked)), (), waits=False)
    approvals.store_parked_turn(conn, message, message_state.root_message_id(message), turn.model_dump(mode="json"))
    note_resumed(conn, message, over=False)
    resume_if_answered(conn, message)
    waiting = tuple(one for one in asked if one.state == "pending")
    return ParkedOutcome(render_questions(waiting, channel) if waiting else _describe_answers(asked), waiting)


def resume_if_answered(conn: Connection, message: StoredMessage) -> StoredMessage | None:
    """Creates the message that resumes a parked turn, once all its questions are answered."""
    asked = approvals.list_message_approvals(conn, message.id)
    answered = [one for one in asked if one.state in _SAID and one.resumed_by is None]
    if not answered or any(one.state == "pending" for one in asked):
        return None
    if approvals.get_parked_turn(conn, message.id) is None:
        return None
    going_on = message_state.add_continuation(
        conn, message, _describe_answers(answered), answered[-1].decided_by or message.user_id
    )
    approvals.mark_resumed(conn, message.id, going_on.id)
    find_kind(message.channel).resume_turn(conn, message)
    return going_on


def load_resumption(conn: Connection, message: StoredMessage) -> Resumption | None:
    """What a thinker needs to resume for this message, None if the message starts a turn."""
    parked_id = message_state.resumed_message_id(message)
    if parked_id is None:
        return None
    turn, root_id = approvals.get_parked_turn(conn, parked_id), message_state.root_message_id(message)
    answers = tuple(
        _to_answered(one) for one in approvals.list_root_approvals(conn, root_id) if one.resumed_by == message.id
    )
    try:
        if turn is None or not answers:
            raise NotFound("The turn that waited is not there any more.")
        return Resumption(message_id=root_id, parked=ParkedTurn.model_validate(turn), answers=answers)
    except ValidationError as error:
        raise NotFound("The turn that waited can not be read any more.", hint="Ask for it again.") from error


def settle_questions(conn: Connection, message: StoredMessage) -> list[Approval]:
    """Cancel the questions and unused approvals of a turn that is over. Returns them."""
    unheard = [
        one for one in approvals.list_message_approvals(conn, message.id) if one.state in ("pending", "approved")
    ]
    if unheard:
        approvals.end_approvals(conn, [one.id for one in unheard], "cancelled")
    note_resumed(conn, message, over=True)
    return unheard


def note_resumed(conn: Connection, message: StoredMessage, *, over: bool) -> None:
    """Settle the approvals of the parked turn that this message resumed, and remove it."""
    parked_id = message_state.resumed_message_id(message)
    if parked_id is None:
        return
    for one in approvals.list_root_approvals(conn, message_state.root_message_id(message)):
        if one.state != "approved" or one.message_id == message.id:
            continue
        call_id = tool_calls.find_same_call(conn, message.id, one.digest)
        if call_id is not None:
            # Policy did not need the approval: a rule added with it allows the call.
            approvals.mark_used(conn, one.id, call_id)
        elif over:
            approvals.end_approvals(conn, [one.id], "cancelled")
    approvals.remove_parked_turn(conn, parked_id)


def _asked_in_turn(conn: Connection, message: StoredMessage, turn: ParkedTurn) -> list[Approval]:
    named = {call.approval_id for call in turn.pending}
    return [one for one in approvals.list_message_approvals(conn, message.id) if one.id in named]


def _describe_answers(asked: list[Approval]) -> str:
    changes = {one.id: " with changes" if one.edited is not None else "" for one in asked}
    return "\n".join(f"{_SAID[one.state]}{changes[one.id]}: {escape_invisible(one.tool)}" for one in asked)


def _to_answered(one: Approval) -> AnsweredApproval:
    verdict: Literal["approved", "denied"] = "approved" if one.state in ("approved", "used") else "denied"
    return AnsweredApproval(approval_id=one.id, verdict=verdict, arguments=one.edited, note=one.note or "")


def _tool_names(asked: list[Approval]) -> str:
    return ", ".join(dict.fromkeys(escape_invisible(one.tool) for one in asked))
