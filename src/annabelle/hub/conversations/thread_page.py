"""One page of a thread as people see it: messages, and behind each the tool calls of its turn (THR-01)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from annabelle.core.tool_cells import QuestionOutcome, ToolCell, fold_tool_cells
from annabelle.store import messages, threads
from annabelle.store.approvals import list_message_approvals
from annabelle.store.ledger import list_answering_models
from annabelle.store.messages import StoredMessage

_UNFINISHED: Final = ("queued", "running")


@dataclass(frozen=True, slots=True)
class PageRange:
    """Which messages: the first `limit` after a position, or the last ones before another."""

    after: int = 0
    before: int | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class ThreadEntry:
    """A message and its turn's tool calls. They share its position, so a page has all of them or none."""

    message: StoredMessage
    cells: list[ToolCell]
    model: str | None = None
    """Which one answered, where the message is an answer."""


def load_thread_page(conn: Connection, thread_id: str, user_id: str, wanted: PageRange) -> list[ThreadEntry]:
    """A page of a person's thread, in order; NotFound for anyone else's."""
    threads.get_thread(conn, thread_id, user_id)
    found = messages.list_messages(conn, thread_id, user_id, wanted.after, wanted.limit, before=wanted.before)
    asked = [message.id for message in found if message.kind == "inbound"]
    events = threads.list_tool_events(conn, asked, user_id)
    models = list_answering_models(conn, [one.reply_to for one in found if one.reply_to is not None])
    return [
        ThreadEntry(one, _fold_cells(conn, one, events.get(one.id, [])), models.get(one.reply_to or ""))
        for one in found
    ]


def _fold_cells(conn: Connection, message: StoredMessage, events: list[threads.StoredEvent]) -> list[ToolCell]:
    over = message.state not in _UNFINISHED
    waiting = over and any(event.data.get("status") == "waiting" for event in events)
    questions: dict[str, QuestionOutcome] = {}
    for one in list_message_approvals(conn, message.id) if waiting else ():
        # The turn that goes on makes the call, or says that it was not made.
        outcome: QuestionOutcome = "continued" if one.resumed_by is not None else "ended"
        questions[one.id] = "open" if one.state == "pending" else outcome
    return fold_tool_cells(events, over=over, questions=questions)
