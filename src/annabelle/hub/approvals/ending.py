"""Questions that end without an answer: they run out, or what they were asked for is not wanted any more (I-28)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from sqlalchemy import Connection

from annabelle.core.events import StoredEvent, TurnEvent
from annabelle.core.messages import now
from annabelle.core.ports import Audit
from annabelle.core.tools import JsonObject
from annabelle.core.trace import current_trace
from annabelle.hub.approvals.question import headline
from annabelle.hub.approvals.queued import asking_task, end_task
from annabelle.store import approvals, decisions, events, messages, parked_turns, threads, to_remember
from annabelle.store.approvals import Approval

End = Literal["expired", "cancelled"]
_WHY: Final[dict[End, str]] = {
    "expired": "Nobody answered in time",
    "cancelled": "It is not wanted any more",
}


@dataclass(frozen=True, slots=True)
class Ended:
    """The questions that were ended, and what was said about it."""

    user_id: str
    questions: list[Approval]
    events: list[StoredEvent] = field(default_factory=list[StoredEvent])

    def note(self, audit: Audit | None, end: End) -> None:
        if audit is None:
            return
        for one in self.questions:
            facts: JsonObject = {
                "event": end,
                "approval_id": one.id,
                "tool": one.tool,
                "agent_id": one.agent_id,
                "user_id": one.user_id,
            }
            audit.note("approval", facts, current_trace())


def end_waiting(conn: Connection, message_id: str, end: End, why: str | None = None) -> Ended:
    """End what the turn of a message asks and is not answered, say so in its thread, and let the turn go.

    One yes among several questions is not enough for the turn to go on, so it ends with the others. A turn that has
    not been delivered yet says it with its delivery.
    """
    message = messages.load(conn, message_id)
    threads.touch(conn, message.thread_id, now())
    asked = approvals.of_message(conn, message_id)
    over = [one for one in asked if one.state in ("pending", "approved") and one.resumed_by is None]
    if not over:
        return Ended(message.user_id, [])
    approvals.end(conn, [one.id for one in over], end)
    parked_turns.remove(conn, message_id)
    if message.state in ("queued", "running"):
        return Ended(message.user_id, over)
    root, task_id = decisions.root_message(conn, message), asking_task(message)
    text = f"{why or _WHY[end]}, so this was not done: {_tools(over)}."
    said = messages.add_agent_message(
        conn, message.thread_id, text, f"{message_id}:{end}",
        reply_to=root.id, metadata={"ended": [one.id for one in over], "state": end}, trace_id=message.trace_id,
    )  # fmt: skip
    if task_id is None:
        to_remember.add(conn, root, threads.load(conn, message.thread_id).agent_id)
    else:
        end_task(conn, task_id, text)
    data: JsonObject = {"message_id": said.id, "text": said.content, **said.metadata}
    told = TurnEvent(message_id=said.id, key="ended", type="message", data=data)
    return Ended(message.user_id, over, events.append(conn, message.thread_id, [told]))


def _tools(asked: list[Approval]) -> str:
    return ", ".join(map(headline, asked))
