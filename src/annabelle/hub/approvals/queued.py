"""Questions of calls in the background: asked in the thread they were queued in, carried on by their task (POL-03).

Policy may have allowed a call when it was queued and want a yes for it by the time it is made. The task waits then as a
turn does: nothing runs, and the answer, or the end of the question, is what it goes on or ends with.
"""

from __future__ import annotations

from sqlalchemy import Connection

from annabelle.core.errors import NotAllowed
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.hub.approvals.question import question
from annabelle.store import approvals, messages, tasks, tool_calls
from annabelle.store.approvals import Approval
from annabelle.store.stored_message import StoredMessage
from annabelle.store.tasks import Task

_TASK = "task_id"


def call_id_of(task_id: str, attempt: int) -> str:
    """The id of a call that is made for a task."""
    return f"{task_id}:{attempt}"


def task_of(context: CallContext) -> str | None:
    """The task that a call in the background is made for; none of a call in a turn."""
    if context.queued_as is None or context.call_id is None:
        return None
    return context.call_id.rpartition(":")[0]


def asking_task(message: StoredMessage) -> str | None:
    """The task whose question is told by this message, if it is one of a task."""
    return str(message.metadata[_TASK]) if message.source == "agent" and _TASK in message.metadata else None


def announce(conn: Connection, task_id: str, call_id: str) -> StoredMessage:
    """Say in the thread that the task needs a yes; the question is one of this message. Once for each call."""
    task = tasks.load(conn, task_id)
    if not task.open or task.thread_id is None:
        raise NotAllowed("The task is over.")
    text = f"The task “{task.name}” needs your yes before it goes on."
    return messages.add_agent_message(conn, task.thread_id, text, f"{call_id}:asks", metadata={_TASK: task_id})


def tell(conn: Connection, asked: Approval) -> StoredMessage:
    """Say the question itself, as it is written down."""
    told: JsonObject = {"approvals": [asked.id], "question_of": asked.root_id}
    return messages.add_agent_message(
        conn, asked.thread_id, question([asked]), f"{asked.call_id}:question", metadata=told
    )


def granted_before(conn: Connection, task_id: str, digest: str) -> bool:
    """Whether an earlier attempt of the same task was made with a yes to the same call, and was stopped half-way."""
    return any(one.state == "used" and one.digest == digest for one in approvals.of_root(conn, task_id))


def settle_task(conn: Connection, task: Task) -> None:
    """A task is over: a yes that policy did not ask for in the end is used up by its call, or taken back."""
    for one in approvals.of_root(conn, task.id):
        if one.state == "approved":
            call_id = tool_calls.made(conn, task.message_id or "", one.digest)
            if call_id is not None:
                approvals.spent(conn, one.id, call_id)
            else:
                approvals.end(conn, [one.id], "cancelled")


def end_task(conn: Connection, task_id: str, why: str) -> None:
    """The question of a task ended without an answer, and the task with it; the thread is told by whoever ended it."""
    result = ToolResult.failure(NotAllowed(why).body()).model_copy(update={"trust": "trusted"})
    tasks.finish(conn, task_id, "failed", result.model_dump(mode="json"))
