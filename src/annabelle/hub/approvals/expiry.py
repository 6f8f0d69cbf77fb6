"""Closes unanswered questions that expired or are no longer needed (I-28)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from sqlalchemy import Connection

from annabelle.agents import find_kind
from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AnnabelleError
from annabelle.core.messages import StoredEvent, now
from annabelle.core.ports import AuditTrail
from annabelle.core.tools import JsonObject
from annabelle.hub.approvals.questions import audit_approval, end_task, find_asking_task, headline
from annabelle.hub.conversations.event_log import EventLog, WriteResult
from annabelle.store import approvals, memory_queue, message_state, messages, threads
from annabelle.store.approvals import Approval, OpenQuestionFilter
from annabelle.store.database import Database
from annabelle.store.outbox import post

End = Literal["expired", "cancelled"]
_WHY: Final[dict[End, str]] = {
    "expired": "Nobody answered in time",
    "cancelled": "It is not wanted any more",
}


@dataclass(frozen=True, slots=True)
class ClosedQuestions:
    user_id: str
    questions: list[Approval]
    events: list[StoredEvent] = field(default_factory=list[StoredEvent])


def close_questions(conn: Connection, message_id: str, end: End, why: str | None = None) -> ClosedQuestions:
    """Close the open questions of a message's turn, say so in its thread, and drop the turn.

    Approved questions are closed too, because the turn needs all of them. A turn that is not delivered yet announces it
    with its delivery.
    """
    message = messages.load_message(conn, message_id)
    threads.touch_thread(conn, message.thread_id, now())
    asked = approvals.list_message_approvals(conn, message_id)
    over = [one for one in asked if one.state in ("pending", "approved") and one.resumed_by is None]
    if not over:
        return ClosedQuestions(message.user_id, [])
    approvals.end_approvals(conn, [one.id for one in over], end)
    approvals.remove_parked_turn(conn, message_id)
    if message.state in ("queued", "running"):
        return ClosedQuestions(message.user_id, over)
    root, task_id = message_state.load_root_message(conn, message), find_asking_task(message)
    text = f"{why or _WHY[end]}, so this was not done: {', '.join(map(headline, over))}."
    told = find_kind(message.channel).drop_turn(conn, message, text, now())
    if told is not None:
        return ClosedQuestions(message.user_id, over, told)
    about: JsonObject = {"ended": [one.id for one in over], "state": end}
    told = post(
        conn, message.thread_id, text, f"{message_id}:{end}", about, reply_to=root.id, trace_id=message.trace_id
    )
    if task_id is None:
        memory_queue.add_unstored_turn(conn, root, threads.load_thread(conn, message.thread_id).agent_id)
    else:
        end_task(conn, task_id, text)
    return ClosedQuestions(message.user_id, over, told)


async def _close_and_note(
    events: EventLog, audit: AuditTrail | None, message_id: str, end: End, why: str | None = None
) -> int:
    """Close the questions of one turn in one transaction. Returns how many."""

    def close(conn: Connection) -> WriteResult[list[Approval]]:
        ended = close_questions(conn, message_id, end, why)
        return WriteResult(ended.questions, ended.user_id, ended.events)

    closed = await events.transact(close)
    for one in closed:
        audit_approval(audit, end, one)
    return len(closed)


_log = logging.getLogger(__name__)
LOOK_SECONDS: Final = 60.0
"""Longest sleep, so that a change of the clock is noticed."""
_SHORTEST_SECONDS: Final = 0.5


class QuestionExpiry:
    """A task that sleeps until the next question expires. It uses the wall clock, because deadlines do."""

    def __init__(
        self,
        database: Database,
        events: EventLog,
        clock: Callable[[], datetime] = now,
        audit: AuditTrail | None = None,
    ) -> None:
        self._database, self._events, self._clock = database, events, clock
        self._audit = audit
        self._asked = asyncio.Event()
        self._watching = BackgroundTasks()

    async def start(self) -> None:
        """Close questions that expired while the hub was down, then watch."""
        await self._try_expire_due()
        self._watching.start(self._watch())

    def wake(self) -> None:
        self._asked.set()

    async def stop(self) -> None:
        await self._watching.stop()

    async def expire_due(self) -> None:
        at = self._clock()
        for message_id in await self._database.read(lambda conn: approvals.list_expired_messages(conn, at)):
            await _close_and_note(self._events, self._audit, message_id, "expired")

    async def _try_expire_due(self) -> None:
        try:
            await self.expire_due()
        except AnnabelleError as error:
            _log.warning("Questions whose time is over could not be ended yet: %s", error.message)

    async def _watch(self) -> None:
        while True:
            self._asked.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), await self._seconds_to_next())
            await self._try_expire_due()

    async def _seconds_to_next(self) -> float:
        try:
            following = await self._database.read(approvals.next_expiry)
        except AnnabelleError:
            return LOOK_SECONDS
        if following is None:
            return LOOK_SECONDS
        return min(LOOK_SECONDS, max(_SHORTEST_SECONDS, (following - self._clock()).total_seconds()))


@dataclass(frozen=True, slots=True)
class QuestionWithdrawal:
    """Withdraws questions, one transaction per turn, with a message in its thread."""

    database: Database
    events: EventLog
    audit: AuditTrail | None = None

    async def withdraw(self, where: OpenQuestionFilter, why: str) -> int:
        """Withdraw the matching questions. Returns how many."""
        waiting = await self.database.read(lambda conn: approvals.list_waiting_messages(conn, where))
        closed = [await _close_and_note(self.events, self.audit, one, "cancelled", why) for one in waiting]
        return sum(closed)

    async def withdraw_for_message(self, message_id: str, why: str) -> int:
        """Withdraw the questions of a message's turn, including later ones if it was resumed."""
        return await self.withdraw(OpenQuestionFilter(turn=message_id), why)
