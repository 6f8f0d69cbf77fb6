"""Delivers exactly once: answer, events, message state and claim change in one transaction (DUR-01, I-20)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection

from annabelle.core.contract import TurnResult
from annabelle.core.errors import ErrorBody
from annabelle.core.events import EventType, TurnEvent
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.hub.events.log import Written
from annabelle.hub.subagents.telling import tell_unheard
from annabelle.store import claims, events, idle_threads, messages, threads, to_remember, tool_calls
from annabelle.store.messages import StoredMessage

_APOLOGY = ErrorBody(code="internal_error", message="The turn failed without saying why.")
_UNRETRYABLE = frozenset({"provider_refused", "bad_config", "agent_paused", "cancelled"})


@dataclass(frozen=True, slots=True)
class Delivered:
    """What came of a message."""

    message: StoredMessage
    reply: StoredMessage | None


def deliver(
    conn: Connection,
    message_id: str,
    result: TurnResult,
    rest_seconds: float | None = None,
    *,
    remember: bool = True,
) -> Written[Delivered]:
    """Finish a message with the result of its turn. Finishing it again changes nothing.

    What was said is noted for the memory in the same transaction, and that facts may be learnt from it once the thread
    has rested so long.
    """
    message = messages.load(conn, message_id)
    if not messages.set_state(conn, message_id, "done" if result.success else "failed"):
        claims.release(conn, message_id)
        return Written(Delivered(message, messages.answer_to(conn, message_id)), message.user_id)
    unknown = tool_calls.unknown_of(conn, message_id)
    reply = _reply(conn, message, result, unknown)
    written = events.append(conn, message.thread_id, _events(message, reply, result, unknown))
    written += tell_unheard(conn, message)
    claims.release(conn, message_id)
    if result.success and remember:
        _to_memory(conn, message, rest_seconds)
    return Written(Delivered(messages.load(conn, message_id), reply), message.user_id, written)


def _to_memory(conn: Connection, message: StoredMessage, rest_seconds: float | None) -> None:
    agent_id = threads.load(conn, message.thread_id).agent_id
    to_remember.add(conn, message, agent_id)
    if rest_seconds is not None:
        idle_threads.put(conn, message, agent_id, now() + timedelta(seconds=rest_seconds))


def _reply(
    conn: Connection, message: StoredMessage, result: TurnResult, unknown: Sequence[str]
) -> StoredMessage | None:
    if not result.success:
        error = result.error or _APOLOGY
        text = error.message if error.hint is None else f"{error.message} {error.hint}"
        return messages.add_reply(
            conn,
            reply_to=message.id,
            content=text,
            source="error",
            metadata={"error": error.model_dump(exclude_none=True), "retryable": error.code not in _UNRETRYABLE},
        )
    text = result.text
    if result.sent_by_tool:
        # What went out through send_message is the answer; a second one would repeat it (RTR-07).
        if any(said.kind == "said" for said in messages.replies_to(conn, message)):
            return None
        text = f"I sent this to another chat: {text}"
    return messages.add_reply(conn, reply_to=message.id, content=text, metadata=_facts(result, unknown))


def _facts(result: TurnResult, unknown: Sequence[str]) -> JsonObject:
    facts: JsonObject = {
        "tools_used": list(result.tools_used),
        "steps": result.steps,
        "usage": result.usage.model_dump(),
    }
    if result.limit is not None:
        facts["limit"] = result.limit
    if unknown:
        facts["unknown_outcomes"] = list(unknown)
    return facts


def _events(
    message: StoredMessage, reply: StoredMessage | None, result: TurnResult, unknown: Sequence[str]
) -> list[TurnEvent]:
    def event(type_: EventType, key: str, data: JsonObject) -> TurnEvent:
        return TurnEvent(message_id=message.id, key=key, type=type_, data=data)

    told: list[TurnEvent] = []
    if unknown:
        calls = ", ".join(unknown)
        told.append(
            event(
                "notice",
                "unknown_outcomes",
                {"text": f"It is not known whether these calls took effect: {calls}.", "call_ids": list(unknown)},
            )
        )
    if reply is not None and reply.source == "error":
        told.append(event("error", "error", {"message_id": reply.id, "text": reply.content, **reply.metadata}))
    elif reply is not None:
        told.append(event("message", "message", {"message_id": reply.id, "text": reply.content}))
    done: JsonObject = {"success": result.success, "reply_id": reply.id if reply is not None else None}
    told.append(event("done", "done", {**done, **_facts(result, unknown)}))
    return told
