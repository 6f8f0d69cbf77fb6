"""Stops single messages, and everything in a chat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from annabelle.core.contract import TurnResult
from annabelle.core.errors import NotFound, TurnCancelled
from annabelle.core.trace import current_trace
from annabelle.hub.agents.stopper import Stopper
from annabelle.hub.conversations.event_log import EventLog, WriteResult
from annabelle.hub.conversations.message_workflow import deliver
from annabelle.store import messages, threads
from annabelle.store.approvals import OpenQuestionFilter
from annabelle.store.messages import StoredMessage
from annabelle.store.threads import Thread

_WHY: Final = "You stopped it"


@dataclass(frozen=True, slots=True)
class StoppedWork:
    """How many turns were stopped, and how many questions withdrawn."""

    turns: int
    questions: int


def describe_stopped(stopped: StoppedWork) -> str:
    if not stopped.turns and not stopped.questions:
        return "Nothing is running here."
    questions = "1 question was" if stopped.questions == 1 else f"{stopped.questions} questions were"
    back = f" {questions} taken back." if stopped.questions else ""
    return ("Stopped." if stopped.turns <= 1 else f"Stopped, with {stopped.turns - 1} more that waited.") + back


@dataclass(frozen=True, slots=True)
class TurnCanceller:
    events: EventLog
    stopper: Stopper

    async def cancel(self, message_id: str, user_id: str) -> None:
        """Stop a user's message: finish it here if it is queued, interrupt its thinker if it runs."""
        stopped = TurnResult(
            message_id=message_id, success=False, error=TurnCancelled("The turn was stopped.").body(current_trace())
        )

        def cancel_if_queued(conn: Connection) -> WriteResult[tuple[StoredMessage, Thread]]:
            message = messages.get_message(conn, message_id, user_id)
            if message.kind != "inbound":
                raise NotFound(f"{message_id} is an answer; ask for the message it answers.")
            thread = threads.load_thread(conn, message.thread_id)
            written = deliver(conn, message_id, stopped).events if message.state == "queued" else ()
            return WriteResult((message, thread), user_id, written)

        message, thread = await self.events.transact(cancel_if_queued)
        if message.state == "queued":
            self.stopper.reply_waiters.notify(message_id)
        if message.state in ("done", "failed"):
            # The turn may be waiting for an approval.
            await self.stopper.withdrawal.withdraw_for_message(message_id, _WHY)
        if message.state != "running":
            return
        await self.stopper.end_turn(message_id, thread.agent_id)

    async def stop_chat(self, channel: str, chat_id: str, user_id: str) -> StoppedWork:
        """Stop what runs and waits in a chat, and withdraw its open questions."""

        def find_unfinished(conn: Connection) -> WriteResult[list[str]]:
            return WriteResult(messages.list_unfinished_in_chat(conn, channel, chat_id, user_id), user_id)

        unfinished = await self.events.transact(find_unfinished)
        for message_id in unfinished:
            await self.cancel(message_id, user_id)
        where = OpenQuestionFilter(channel=channel, chat_id=chat_id, user_id=user_id)
        return StoppedWork(len(unfinished), await self.stopper.withdrawal.withdraw(where, _WHY))
