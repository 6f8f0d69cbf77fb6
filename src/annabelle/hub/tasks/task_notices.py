"""Tells a task's thread how the task ended, once (I-26)."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

from annabelle.core.messages import StoredEvent
from annabelle.core.tools import JsonObject, ToolResult
from annabelle.hub.approvals import questions
from annabelle.hub.approvals.questions import question_event
from annabelle.store import messages, tasks, threads
from annabelle.store.approvals import Approval
from annabelle.store.messages import StoredMessage
from annabelle.store.outbox import announce, post
from annabelle.store.tasks import StoredTask

_TOLD_CHARS: Final = 4_000
_ENDED: Final = {"done": "is done", "unknown": "was interrupted, and whether it took effect is not known"}


def tell_end(conn: Connection, task: StoredTask) -> list[StoredEvent]:
    """Post the result in the task's thread, if it has one."""
    if task.thread_id is None:
        return []
    result = ToolResult.model_validate(task.result)
    about: JsonObject = {"task_id": task.id, "state": task.state, "trust": result.trust}
    return post(conn, task.thread_id, _describe_end(task, result), f"{task.id}:told", about)


def tell_question(conn: Connection, asked: Approval) -> list[StoredEvent]:
    said = [messages.load_message(conn, asked.message_id), questions.tell_task_question(conn, asked)]
    told = [event for one in said for event in announce(conn, one)]
    return [*told, *threads.append_events(conn, asked.thread_id, [question_event(asked)])]


def tell_unheard(conn: Connection, message: StoredMessage) -> list[StoredEvent]:
    """On delivery, post results of subagents that the turn did not receive before it was stopped."""
    ended = [task for task in tasks.list_message_tasks(conn, message.id) if task.kind == "subagent" and not task.open]
    if not ended:
        return []
    known = threads.list_message_events(conn, message.id, message.user_id)
    heard = {event.data.get("call_id") for event in known if event.type == "tool_complete"}
    return [event for task in ended if task.request.get("call_id") not in heard for event in tell_end(conn, task)]


def _describe_end(task: StoredTask, result: ToolResult) -> str:
    text = result.text if len(result.text) <= _TOLD_CHARS else f"{result.text[: _TOLD_CHARS - 1]}…"
    return f"The task “{task.name}” {_ENDED.get(task.state, 'failed')}. {text}".strip()
