"""Delivers exactly once: answer, events, message state and claim change in one transaction (DUR-01, I-20)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection

from annabelle.core.contract import TurnResult
from annabelle.core.errors import ErrorBody, SecurityBlocked
from annabelle.core.events import EventType, TurnEvent
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.hub.approvals.parking import Parked, park, settle, was_asked
from annabelle.hub.approvals.question import asking, headline
from annabelle.hub.events.log import Written
from annabelle.hub.guarding import told_already
from annabelle.hub.subagents.telling import tell_unheard
from annabelle.store import claims, events, idle_threads, messages, threads, to_remember, tool_calls
from annabelle.store.approvals import Approval
from annabelle.store.messages import StoredMessage

_APOLOGY = ErrorBody(code="internal_error", message="The turn failed without saying why.")
_UNASKED = ErrorBody(code="internal_error", message="The turn waits for the answer to a question nobody was asked.")
_UNRETRYABLE = frozenset(
    {"provider_refused", "bad_config", "agent_paused", "agent_stopped", "cancelled", "security_blocked"}
)


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
    has rested so long. A turn that waits for the person is answered by its questions, and remembered when it is over.
    """
    message = messages.load(conn, message_id)
    if result.parked is not None and not was_asked(conn, message, result.parked):
        result = result.model_copy(update={"success": False, "error": result.error or _UNASKED, "parked": None})
    if not messages.set_state(conn, message_id, "done" if result.success else "failed"):
        claims.release(conn, message_id)
        return Written(Delivered(message, messages.answer_to(conn, message_id)), message.user_id)
    parked = None if result.parked is None else park(conn, message, result.parked)
    unheard = settle(conn, message) if parked is None else []
    unknown = tool_calls.unknown_of(conn, message_id)
    reply = (
        _reply(conn, message, result, unknown)
        if parked is None
        else _question(conn, message, parked, _facts(result, unknown))
    )
    written = events.append(
        conn,
        message.thread_id,
        [
            *map(asking, parked.questions if parked is not None else ()),
            *_withdrawn(message, unheard),
            *_events(message, reply, result, unknown),
        ],
    )
    written += tell_unheard(conn, message)
    claims.release(conn, message_id)
    if result.success and remember and not (parked is not None and parked.waits):
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
        if error.code == SecurityBlocked.code and told_already(conn, message):
            return None
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


def _question(conn: Connection, message: StoredMessage, parked: Parked, facts: JsonObject) -> StoredMessage:
    """The answer of a turn that waits, in the hub's own words: what is asked must be what is written down."""
    asked: JsonObject = {"approvals": [one.id for one in parked.questions]}
    return messages.add_reply(conn, reply_to=message.id, content=parked.text, metadata=facts | asked)


def _withdrawn(message: StoredMessage, unheard: Sequence[Approval]) -> list[TurnEvent]:
    """A question that was asked in a turn which ended otherwise must not just vanish (I-28)."""
    return [
        TurnEvent(
            message_id=message.id,
            key=f"withdrawn:{one.id}",
            type="notice",
            data={"text": f"The question about {headline(one)} was taken back.", "approval_id": one.id},
        )
        for one in unheard
    ]


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
    if result.parked is not None:
        done["parked"] = True
    told.append(event("done", "done", {**done, **_facts(result, unknown)}))
    return told
