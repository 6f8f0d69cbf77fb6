"""The durable workflow of one message: run its turn, then deliver the answer exactly once (DUR-01, I-20)."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from annabelle.agents import find_kind
from annabelle.agents.kind import EndedTurn, ParkedOutcome
from annabelle.core.backoff import backoff_seconds
from annabelle.core.contract import ParkedTurn, TurnBrief, TurnResult
from annabelle.core.errors import (
    UNRETRYABLE,
    AnnabelleError,
    ErrorBody,
    SecurityBlocked,
    StorageTrouble,
    TurnCancelled,
    Unavailable,
)
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import CHAT_APPS, EventType, TurnEvent, now
from annabelle.core.tools import CallContext, JsonObject
from annabelle.core.trace import use_trace
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.agents.thinker_calls import TurnFollower, failed_turn
from annabelle.hub.approvals.approval_store import (
    load_resumption,
    park_turn,
    settle_questions,
    was_asked,
)
from annabelle.hub.approvals.questions import headline, question_event
from annabelle.hub.base import HubBase, HubStorage
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.hub.conversations.turns import ActiveTurns, ReplyWaiters, load_call_context
from annabelle.hub.memory.idle_threads import idle_seconds
from annabelle.hub.tasks.task_notices import tell_unheard
from annabelle.hub.trust.guard import MessageGuard, was_sender_told
from annabelle.store import claims, memory_queue, messages, threads, tool_calls
from annabelle.store.approvals import Approval
from annabelle.store.messages import StoredMessage
from annabelle.store.outbox import describe_unasked, queue_delivery
from annabelle.toolbox.facade import Toolbox

_APOLOGY = ErrorBody(code="internal_error", message="The turn failed without saying why.")
_UNASKED = ErrorBody(code="internal_error", message="The turn waits for the answer to a question nobody was asked.")


@dataclass(frozen=True, slots=True)
class Delivered:
    message: StoredMessage
    reply: StoredMessage | None


def deliver(
    conn: Connection,
    message_id: str,
    result: TurnResult,
    idle_seconds: float | None = None,
    *,
    remember: bool = True,
    at: datetime | None = None,
    about: JsonObject | None = None,
) -> WriteResult[Delivered]:
    """Finish a message with the result of its turn. Finishing it again changes nothing.

    The same transaction queues the turn for the memory, and fact extraction for when the thread has been idle for
    `idle_seconds`. A parked turn is answered by its questions, and remembered when it is over. `about` is added to the
    answer's metadata and its event.
    """
    message = messages.load_message(conn, message_id)
    if result.parked is not None and not was_asked(conn, message, result.parked):
        result = result.model_copy(update={"success": False, "error": result.error or _UNASKED, "parked": None})
    if not messages.set_message_state(conn, message_id, "done" if result.success else "failed"):
        claims.release_claim(conn, message_id)
        return WriteResult(Delivered(message, messages.find_answer(conn, message_id)), message.user_id)
    kind = find_kind(message.channel)
    parked = None if result.parked is None else _park(conn, message, result.parked)
    unheard = settle_questions(conn, message) if parked is None else []
    unknown = tool_calls.list_unknown_calls(conn, message_id)
    reply = (
        _add_reply(conn, message, result, _reply_metadata(result, unknown) | (about or {}))
        if parked is None
        else _add_question(conn, message, parked, _reply_metadata(result, unknown))
    )
    if reply is not None and reply.channel in CHAT_APPS:
        queue_delivery(conn, reply)
    written = threads.append_events(
        conn,
        message.thread_id,
        [
            *map(question_event, parked.questions if parked is not None else ()),
            *_withdrawn_events(message, unheard),
            *_turn_events(message, reply, result, unknown, about),
        ],
    )
    written += tell_unheard(conn, message)
    written += kind.end_turn(conn, EndedTurn(message, result, at or now(), parked))
    claims.release_claim(conn, message_id)
    if result.success and remember and not message.background and not (parked is not None and parked.waits):
        _add_to_memory(conn, message, idle_seconds)
    return WriteResult(Delivered(messages.load_message(conn, message_id), reply), message.user_id, written)


def _park(conn: Connection, message: StoredMessage, turn: ParkedTurn) -> ParkedOutcome:
    """Ask in the words of the chat that the turn acts in."""
    channel = load_call_context(conn, message).channel or message.channel
    return park_turn(conn, message, turn, channel)


def _add_to_memory(conn: Connection, message: StoredMessage, idle_seconds: float | None) -> None:
    agent_id = threads.load_thread(conn, message.thread_id).agent_id
    memory_queue.add_unstored_turn(conn, message, agent_id)
    if idle_seconds is not None:
        memory_queue.put_idle_thread(conn, message, agent_id, now() + timedelta(seconds=idle_seconds))


def _add_reply(conn: Connection, message: StoredMessage, result: TurnResult, facts: JsonObject) -> StoredMessage | None:
    if not result.success:
        error = result.error or _APOLOGY
        if error.code == SecurityBlocked.code and was_sender_told(conn, message):
            return None
        text = error.message if error.hint is None else f"{error.message} {error.hint}"
        about: JsonObject = {
            "error": error.model_dump(exclude_none=True),
            "retryable": error.code not in UNRETRYABLE,
            "attempts": error.attempts or 1,
        }
        return messages.add_reply(conn, reply_to=message.id, content=text, source="error", metadata=about)
    text = result.text
    if message.background and not text.strip():
        return None
    if result.sent_by_tool:
        # send_message already delivered the answer; a reply would repeat it (RTR-07).
        if any(said.kind == "said" for said in messages.list_replies(conn, message)):
            return None
        text = f"I sent this to another chat: {text}"
    return messages.add_reply(conn, reply_to=message.id, content=text, metadata=facts)


def _add_question(conn: Connection, message: StoredMessage, parked: ParkedOutcome, facts: JsonObject) -> StoredMessage:
    """Answers a parked turn in the hub's own words, so the person sees exactly the stored question."""
    asked: JsonObject = {"approvals": [one.id for one in parked.questions]}
    return messages.add_reply(conn, reply_to=message.id, content=parked.text, metadata=facts | asked)


def _withdrawn_events(message: StoredMessage, unheard: Sequence[Approval]) -> list[TurnEvent]:
    """Tells the person that a question was withdrawn because its turn ended (I-28)."""
    return [
        TurnEvent(
            message_id=message.id,
            key=f"withdrawn:{one.id}",
            type="notice",
            data={"text": f"The question about {headline(one)} was taken back.", "approval_id": one.id},
        )
        for one in unheard
    ]


def _reply_metadata(result: TurnResult, unknown: Sequence[str]) -> JsonObject:
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


def _turn_events(
    message: StoredMessage,
    reply: StoredMessage | None,
    result: TurnResult,
    unknown: Sequence[str],
    about: JsonObject | None,
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
        told.append(event("message", "message", {"message_id": reply.id, "text": reply.content, **(about or {})}))
    done: JsonObject = {"success": result.success, "reply_id": reply.id if reply is not None else None}
    if result.parked is not None:
        done["parked"] = True
    told.append(event("done", "done", {**done, **_reply_metadata(result, unknown)}))
    return told


_log = logging.getLogger(__name__)
HANDLE_MESSAGE = "handle_message"
_DISK_CAP_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageWorkflow:
    """Records only the turn as a step, because each step costs a write. The store records the delivery."""

    base: HubBase
    storage: HubStorage
    agents: AgentManager
    turns: ActiveTurns
    reply_waiters: ReplyWaiters
    toolbox: Toolbox
    guard: MessageGuard | None = None

    async def begin(self, message_id: str) -> None:
        if self.base.lifecycle.stopping:
            raise Unavailable("Annabelle is shutting down; the message is taken up at the next start.")
        await self.storage.durable.start(HANDLE_MESSAGE, message_id, {"message_id": message_id})

    def make_workflow(
        self, finished: Callable[[str], Awaitable[None]]
    ) -> Callable[[JsonObject], Awaitable[JsonObject]]:
        """The workflow function. It calls `finished` with the message id at the end."""

        async def handle_message(argument: JsonObject) -> JsonObject:
            with self.turns.busy():
                outcome = await self._run(argument)
                await finished(str(argument["message_id"]))
            failpoint("hub.after_release")
            return outcome

        return handle_message

    async def _run(self, argument: JsonObject) -> JsonObject:
        """From the claimed message to its delivered answer. Errors of the turn become the answer."""
        message_id = str(argument["message_id"])
        durable = self.storage.durable
        try:
            result = TurnResult.model_validate(await durable.step("run_turn", lambda: self._run_turn(message_id)))
        except AnnabelleError as error:
            result = failed_turn(message_id, error)
        failpoint("hub.after_turn")
        # Not a recorded step: this transaction is idempotent.
        await self._deliver(message_id, result)
        failpoint("hub.after_deliver")
        if result.parked is not None:
            failpoint("hub.after_park")
        return {}

    async def _run_turn(self, message_id: str) -> JsonObject:
        await self.base.lifecycle.wait_ready()

        def load(conn: Connection) -> tuple[StoredMessage, CallContext, TurnBrief]:
            message = messages.load_message(conn, message_id)
            context = load_call_context(conn, message)
            return message, context, self._load_brief(conn, message, context)

        message, context, brief = await self.storage.database.read(load)
        agent_id = context.agent_id or ""
        with use_trace(message.trace_id) as trace_id, self.turns.open(context):
            failpoint("hub.before_turn")
            began = time.monotonic()
            self.storage.traces.write("turn.started", {"message_id": message_id, "agent_id": agent_id})
            tools = self.toolbox.tools(self.agents.registry.policy(agent_id))
            brief = brief.model_copy(update={"trace_id": trace_id, "tools_version": tools.version})
            try:
                turn = self._follow_turn(message, agent_id, brief)
                result = await self.turns.run_unless_abandoned(message_id, turn)
            except AnnabelleError as error:
                result = failed_turn(message_id, error)
            if result is None:
                result = failed_turn(message_id, TurnCancelled("The turn was stopped."))
            self.storage.traces.write(
                "turn.finished",
                {
                    "message_id": message_id,
                    "agent_id": agent_id,
                    "thread_id": message.thread_id,
                    "success": result.success,
                    "duration_ms": round((time.monotonic() - began) * 1000, 1),
                },
            )
            return result.model_dump(mode="json")

    def _load_brief(self, conn: Connection, message: StoredMessage, context: CallContext) -> TurnBrief:
        resume = load_resumption(conn, message)
        brief = TurnBrief(
            message_id=message.id,
            thread_id=message.thread_id,
            trace_id="",
            user_id=message.user_id,
            channel=context.channel or message.channel,
            chat_id=context.chat_id or message.chat_id,
            sender_id=message.sender_id,
            text=_describe_message(message) if resume is None else resume.parked.text,
            sent_at=message.created_at,
            resume=resume,
            unasked=describe_unasked(conn, message),
        )
        settings = self.base.settings
        limits = self.agents.registry.agent(context.agent_id or "").as_profile(settings).limits
        terms = find_kind(message.channel).load_terms(conn, message, limits, settings)
        return brief.model_copy(update=terms)

    async def _follow_turn(self, message: StoredMessage, agent_id: str, brief: TurnBrief) -> TurnResult:
        if self.guard is not None:
            await self.guard.admit(message, agent_id)
        async with self.agents.turn(agent_id) as runner:
            follower = TurnFollower(brief, runner, self.storage.events, lambda: self.turns.cancelled(message.id))
            return await follower.follow()

    async def _deliver(self, message_id: str, result: TurnResult) -> None:
        failpoint("hub.before_deliver")
        delivered = await self._deliver_until_stored(message_id, result)
        self.storage.traces.write(
            "message.delivered",
            {"message_id": message_id, "state": delivered.message.state},
            trace_id=delivered.message.trace_id,
        )
        self.reply_waiters.notify(message_id)

    async def _deliver_until_stored(self, message_id: str, result: TurnResult) -> Delivered:
        # Never give up on an answer: wait for a full disk; a restart begins this step again.
        for failed in itertools.count(1):
            try:
                return await self.storage.events.transact(
                    lambda conn: deliver(
                        conn, message_id, result, idle_seconds(self.base.settings), at=self.base.lifecycle.clock.now()
                    )
                )
            except (StorageTrouble, Unavailable) as trouble:
                _log.error("%s could not be delivered yet: %s", message_id, trouble.message)
                await asyncio.sleep(backoff_seconds(failed, 0.5, _DISK_CAP_SECONDS))
        raise AssertionError("unreachable")


def _describe_message(message: StoredMessage) -> str:
    if message.source != "outside_agent":
        return message.content
    return f"This comes from another agent ({message.sender_id}), not from the user:\n\n{message.content}"
