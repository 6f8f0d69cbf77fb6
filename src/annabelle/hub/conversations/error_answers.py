"""What a person does about a turn that failed: have it tried again, or put the error aside (THR-03)."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from annabelle.agents import find_kind
from annabelle.core.errors import Conflict, NotFound
from annabelle.core.messages import InboundMessage, TurnEvent
from annabelle.core.tools import JsonObject
from annabelle.hub.conversations.event_log import EventLog, WriteResult
from annabelle.hub.conversations.message_gate import AdmittedMessage, MessageGate
from annabelle.store import messages, threads
from annabelle.store.database import Database
from annabelle.store.message_state import add_facts
from annabelle.store.messages import StoredMessage
from annabelle.store.threads import Thread


@dataclass(frozen=True, slots=True)
class ErrorAnswerPlace:
    """An error answer, and whose it has to be."""

    thread_id: str
    message_id: str
    user_id: str


@dataclass(frozen=True, slots=True)
class ErrorAnswers:
    database: Database
    events: EventLog
    gate: MessageGate

    async def retry(self, place: ErrorAnswerPlace) -> AdmittedMessage:
        """Say the same words again, once: whoever asks again gets the same message."""

        def load(conn: Connection) -> InboundMessage:
            thread, answer = _load_error(conn, place)
            asked = messages.get_message(conn, str(answer.reply_to), place.user_id)
            if "retried_as" not in answer.metadata:
                _check_retryable(thread, answer, asked)
            return InboundMessage(
                # One message, however often and however much at once it is asked for.
                id=f"{answer.id}_again",
                channel=asked.channel,
                chat_id=asked.chat_id,
                sender_id=asked.sender_id,
                user_id=asked.user_id,
                source="outside_agent" if asked.source == "outside_agent" else "user",
                text=asked.content,
                agent_id=thread.agent_id,
            )

        admitted = await self.gate.receive(await self.database.read(load))
        # After it was stored: a crash in between leaves an error that is retried again, as the same message.
        facts: JsonObject = {"retried_as": admitted.message.id}
        await self._mark(place, facts, "retried", "This is tried again.")
        return admitted

    async def dismiss(self, place: ErrorAnswerPlace) -> StoredMessage:
        """Mark the error as seen; it stays in the thread."""
        return await self._mark(place, {"dismissed": True}, "dismissed", "The error was put aside.")

    async def _mark(self, place: ErrorAnswerPlace, facts: JsonObject, what: str, text: str) -> StoredMessage:
        def mark(conn: Connection) -> WriteResult[StoredMessage]:
            _, answer = _load_error(conn, place)
            add_facts(conn, answer.id, facts)
            told: JsonObject = {"text": text, "what": what, "message_id": answer.id, **facts}
            event = TurnEvent(message_id=str(answer.reply_to), key=f"{what}:{answer.id}", type="notice", data=told)
            written = threads.append_events(conn, answer.thread_id, [event])
            return WriteResult(messages.load_message(conn, answer.id), place.user_id, written)

        return await self.events.transact(mark)


def _load_error(conn: Connection, place: ErrorAnswerPlace) -> tuple[Thread, StoredMessage]:
    thread = threads.get_thread(conn, place.thread_id, place.user_id)
    answer = messages.get_message(conn, place.message_id, place.user_id)
    if answer.thread_id != thread.id:
        raise NotFound(f"There is no message {place.message_id}.")
    if answer.source != "error" or answer.reply_to is None:
        raise Conflict("Only an error can be tried again or put aside.", hint="This message is none.")
    return thread, answer


def _check_retryable(thread: Thread, answer: StoredMessage, asked: StoredMessage) -> None:
    if answer.metadata.get("retryable") is not True:
        raise Conflict("Trying again cannot help here.", hint="Do what the error says, then say it again.")
    if answer.metadata.get("dismissed") is True:
        raise Conflict("This error was put aside.", hint="Say it again if you want it done.")
    if thread.ended_at is not None:
        raise Conflict("Another conversation has taken the place of this one.", hint="Say it again there.")
    if asked.source not in ("user", "outside_agent") or not find_kind(asked.channel).accepts_messages:
        raise Conflict("Nobody said what failed here, so it cannot be said again.", hint="Ask for it in a chat.")
