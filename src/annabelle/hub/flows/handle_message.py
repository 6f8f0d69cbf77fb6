"""The durable flow of one message: run its turn, deliver its answer. The workflow's id is the message's id."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sqlalchemy import Connection

from annabelle.core.contract import Resumption, TurnBrief, TurnResult
from annabelle.core.errors import AnnabelleError, StorageTrouble, TurnCancelled, Unavailable
from annabelle.core.failpoints import failpoint
from annabelle.core.tools import JsonObject
from annabelle.core.trace import TraceFile, traced
from annabelle.durable.durable import Durable
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.approvals.parking import resumption
from annabelle.hub.events.log import EventLog
from annabelle.hub.finished import Finished
from annabelle.hub.flows.deliver import Delivered, deliver
from annabelle.hub.flows.follow import Follower, failure
from annabelle.hub.guarding import MessageGuard
from annabelle.hub.turns import Turns, context_of
from annabelle.store import messages, threads
from annabelle.store.database import Database
from annabelle.store.messages import StoredMessage
from annabelle.store.threads import Thread

_log = logging.getLogger(__name__)
HANDLE_MESSAGE = "handle_message"
_DISK_CAP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class FlowServices:
    """What the flow works with."""

    database: Database
    durable: Durable
    agents: AgentManager
    events: EventLog
    turns: Turns
    finished: Finished
    traces: TraceFile
    ready: Callable[[], Awaitable[None]]
    tools_version: Callable[[str], str]
    rest_seconds: float | None = None
    on_delivered: Callable[[StoredMessage], None] = lambda _message: None
    guard: MessageGuard | None = None


class HandleMessage:
    """One recorded step, because each costs a write: the turn. The delivery keeps its own record, in the store."""

    def __init__(self, services: FlowServices) -> None:
        self._services = services

    def then(self, finished: Callable[[str], Awaitable[None]]) -> Callable[[JsonObject], Awaitable[JsonObject]]:
        """The workflow: the flow, and then word to whoever decides which message comes next."""

        async def handle_message(argument: JsonObject) -> JsonObject:
            with self._services.turns.busy():
                outcome = await self._run(argument)
                await finished(str(argument["message_id"]))
            failpoint("hub.after_release")
            return outcome

        return handle_message

    async def _run(self, argument: JsonObject) -> JsonObject:
        """From the claimed message to its delivered answer. It never fails: whatever goes wrong is the answer."""
        message_id = str(argument["message_id"])
        durable = self._services.durable
        try:
            result = TurnResult.model_validate(await durable.step("run_turn", lambda: self._run_turn(message_id)))
        except AnnabelleError as error:
            result = failure(message_id, error)
        failpoint("hub.after_turn")
        # Not a recorded step: it is one transaction that changes nothing the second time.
        await self._deliver(message_id, result)
        failpoint("hub.after_deliver")
        if result.parked is not None:
            failpoint("hub.after_park")
        return {}

    async def _run_turn(self, message_id: str) -> JsonObject:
        services = self._services
        await services.ready()

        def load(conn: Connection) -> tuple[StoredMessage, Thread, Resumption | None]:
            message = messages.load(conn, message_id)
            return message, threads.load(conn, message.thread_id), resumption(conn, message)

        message, thread, resume = await services.database.read(load)
        with traced(message.trace_id) as trace_id, services.turns.open(context_of(message, thread)):
            failpoint("hub.before_turn")
            services.traces.write("turn.started", {"message_id": message_id, "agent_id": thread.agent_id})
            brief = _brief(message, resume, trace_id, services.tools_version(thread.agent_id))
            try:
                turn = self._turn(message, thread, brief)
                result = await services.turns.unless_abandoned(message_id, turn)
            except AnnabelleError as error:
                result = failure(message_id, error)
            if result is None:
                result = failure(message_id, TurnCancelled("The turn was stopped."))
            services.traces.write("turn.finished", {"message_id": message_id, "success": result.success})
            return result.model_dump(mode="json")

    async def _turn(self, message: StoredMessage, thread: Thread, brief: TurnBrief) -> TurnResult:
        services = self._services
        if services.guard is not None:
            await services.guard.admit(message, thread.agent_id)
        async with services.agents.turn(thread.agent_id) as runner:
            follower = Follower(brief, runner, services.events, lambda: services.turns.cancelled(message.id))
            return await follower.follow()

    async def _deliver(self, message_id: str, result: TurnResult) -> None:
        services = self._services
        failpoint("hub.before_deliver")
        delivered = await self._insist(message_id, result)
        services.traces.write(
            "message.delivered",
            {"message_id": message_id, "state": delivered.message.state},
            trace_id=delivered.message.trace_id,
        )
        services.finished.tell(message_id)
        if delivered.message.state == "done":
            services.on_delivered(delivered.message)

    async def _insist(self, message_id: str, result: TurnResult) -> Delivered:
        # An answer is never given up: a full disk is waited for, and a restart begins this step again.
        for attempt in itertools.count():
            try:
                return await self._services.events.transact(
                    lambda conn: deliver(conn, message_id, result, self._services.rest_seconds)
                )
            except (StorageTrouble, Unavailable) as trouble:
                _log.error("%s could not be delivered yet: %s", message_id, trouble.message)
                await asyncio.sleep(min(_DISK_CAP_SECONDS, 0.5 * 2**attempt))
        raise AssertionError("unreachable")


def _brief(message: StoredMessage, resume: Resumption | None, trace_id: str, tools_version: str) -> TurnBrief:
    return TurnBrief(
        message_id=message.id,
        thread_id=message.thread_id,
        trace_id=trace_id,
        user_id=message.user_id,
        channel=message.channel,
        chat_id=message.chat_id,
        sender_id=message.sender_id,
        text=message.content if resume is None else resume.parked.text,
        sent_at=message.created_at,
        tools_version=tools_version,
        resume=resume,
    )
