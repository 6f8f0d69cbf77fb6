"""The text and events of approval questions, including those of background tasks (POL-03)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import Connection

from annabelle.core.contract import TERMINAL
from annabelle.core.errors import NotAllowed
from annabelle.core.messages import CHAT_APPS, TurnEvent
from annabelle.core.ports import AuditTrail
from annabelle.core.text import escape_invisible, escape_invisible_json
from annabelle.core.tools import CallContext, JsonObject, ToolResult, name_in_words
from annabelle.core.trace import current_trace
from annabelle.store import approvals, messages, tasks, threads, tool_calls
from annabelle.store.approvals import Approval
from annabelle.store.messages import StoredMessage
from annabelle.store.tasks import StoredTask

SHOWN_CHARS: Final = 600
SHOWN_ARGUMENTS: Final = 40
"""Limits for chats. The API and the terminal show the whole question."""


def render_questions(approvals: Sequence[Approval], channel: str = TERMINAL) -> str:
    """The questions in words that can be followed where they are read."""
    return "\n\n".join(_render_question(approval, in_chat_app=channel in CHAT_APPS) for approval in approvals)


def _render_question(approval: Approval, *, in_chat_app: bool) -> str:
    whole = "" if in_chat_app else f": annabelle approvals show {approval.id}"
    lines = [f"May I call {name_in_words(escape_invisible(approval.tool))}?"]
    given = list(approval.arguments.items())
    lines += [f"  {escape_invisible(name)}: {_shorten_value(value, whole)}" for name, value in given[:SHOWN_ARGUMENTS]]
    if len(given) > SHOWN_ARGUMENTS:
        left_out = len(given) - SHOWN_ARGUMENTS
        lines.append(f"  [… {left_out} more arguments are left out here{whole} …]")
    if not given:
        lines.append("  (without arguments)")
    lines += [
        f"Why I ask: {' '.join(map(escape_invisible, approval.reasons)) or 'Policy wants your yes for this call.'}",
        "A yes makes exactly this call, once. Without an answer by "
        f"{format_deadline(approval.expires_at)} nothing is done.",
    ]
    if not in_chat_app:
        lines.append(f"Answer with: annabelle approvals approve {approval.id} (or deny)")
    return "\n".join(lines)


def question_event(approval: Approval) -> TurnEvent:
    data: JsonObject = {
        "approval_id": approval.id,
        "tool": approval.tool,
        "arguments": approval.arguments,
        "reasons": approval.reasons,
        "expires_at": approval.expires_at.isoformat(),
    }
    return TurnEvent(message_id=approval.message_id, key=f"approval:{approval.id}", type="approval", data=data)


def audit_approval(audit: AuditTrail | None, event: str, approval: Approval, **more: object) -> None:
    if audit is not None:
        facts: JsonObject = {
            "event": event,
            "approval_id": approval.id,
            "tool": approval.tool,
            "agent_id": approval.agent_id,
            "user_id": approval.user_id,
            **more,
        }
        audit.note("approval", facts, current_trace())


def format_deadline(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def headline(approval: Approval) -> str:
    return f"{escape_invisible(approval.tool)} ({approval.id})"


def _shorten_value(value: object, whole: str) -> str:
    text = escape_invisible_json(value)
    if len(text) <= SHOWN_CHARS:
        return text
    half = SHOWN_CHARS // 2
    left_out = len(text) - 2 * half
    cut = f"[… {left_out} of {len(text)} characters are left out here{whole} …]"
    return f"{text[:half]} {cut} {text[-half:]}"


_TASK = "task_id"


def make_task_call_id(task_id: str, attempt: int) -> str:
    return f"{task_id}:{attempt}"


def find_background_task(context: CallContext) -> str | None:
    """The task that a background call belongs to, None for a call in a turn."""
    if context.queued_as is None or context.call_id is None:
        return None
    return context.call_id.rpartition(":")[0]


def find_asking_task(message: StoredMessage) -> str | None:
    """The task whose question this message announces, if any."""
    return str(message.metadata[_TASK]) if message.source == "agent" and _TASK in message.metadata else None


def announce_task_question(conn: Connection, task_id: str, call_id: str) -> StoredMessage:
    """Adds the message in the thread that the question of a task belongs to, once per call."""
    task = tasks.load_task(conn, task_id)
    if not task.open or task.thread_id is None:
        raise NotAllowed("The task is over.")
    text = f"The task “{task.name}” needs your yes before it goes on."
    return messages.add_agent_message(conn, task.thread_id, text, f"{call_id}:asks", metadata={_TASK: task_id})


def tell_task_question(conn: Connection, asked: Approval) -> StoredMessage:
    """Adds a message with the text of the stored question."""
    told: JsonObject = {"approvals": [asked.id], "question_of": asked.root_id}
    channel = threads.load_thread(conn, asked.thread_id).channel
    return messages.add_agent_message(
        conn, asked.thread_id, render_questions([asked], channel), f"{asked.call_id}:question", metadata=told
    )


def was_granted_before(conn: Connection, task_id: str, digest: str) -> bool:
    """Whether an interrupted attempt of the task already used an approval for the same call."""
    return any(one.state == "used" and one.digest == digest for one in approvals.list_root_approvals(conn, task_id))


def settle_task(conn: Connection, task: StoredTask) -> None:
    """Settle unused approvals of a finished task: used if the call was made, else cancelled."""
    for one in approvals.list_root_approvals(conn, task.id):
        if one.state == "approved":
            call_id = tool_calls.find_same_call(conn, task.message_id or "", one.digest)
            if call_id is not None:
                approvals.mark_used(conn, one.id, call_id)
            else:
                approvals.end_approvals(conn, [one.id], "cancelled")


def end_task(conn: Connection, task_id: str, why: str) -> None:
    """Fail a task whose question ended without an answer. The caller tells the thread."""
    result = ToolResult.failure(NotAllowed(why).body()).model_copy(update={"trust": "trusted"})
    tasks.finish_task(conn, task_id, "failed", result.model_dump(mode="json"))
