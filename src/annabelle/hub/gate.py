"""The gate: every message of every channel enters here, is stored once, and starts its turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from annabelle.core.contract import TurnResult
from annabelle.core.errors import AgentPaused, NotFound, TurnCancelled, Unavailable
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import InboundMessage
from annabelle.core.settings import Settings
from annabelle.core.trace import TraceFile, current_trace
from annabelle.durable.lanes import Lanes
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.approvals.withdrawing import Withdrawing
from annabelle.hub.commands.stop import answer as stop_answer
from annabelle.hub.commands.stop import is_stop
from annabelle.hub.events.log import EventLog, Written
from annabelle.hub.finished import Finished
from annabelle.hub.flows.deliver import deliver
from annabelle.hub.home_secrets import HomeSecrets
from annabelle.hub.rules.rules import Place, Rules
from annabelle.hub.stopping.stopper import Stopper
from annabelle.store import events, messages, threads
from annabelle.store.messages import QueueLimits, StoredMessage
from annabelle.store.open_questions import Where
from annabelle.store.threads import Thread

_STOPPED: Final = "You stopped it"


@dataclass(frozen=True, slots=True)
class Entered:
    """A message that is stored. Its events come after number `last_event_id`."""

    message: StoredMessage
    duplicate: bool
    last_event_id: int


@dataclass(frozen=True, slots=True)
class GateParts:
    """What the gate works with."""

    agents: AgentManager
    events: EventLog
    lanes: Lanes
    stopper: Stopper
    finished: Finished
    traces: TraceFile
    questions: Withdrawing
    rules: Rules
    secrets: HomeSecrets


class Gate:
    """Lets messages in, unless there is nobody to answer them."""

    def __init__(self, settings: Settings, parts: GateParts) -> None:
        self._agents, self._log, self._lanes = parts.agents, parts.events, parts.lanes
        self._stopper, self._finished, self._traces = parts.stopper, parts.finished, parts.traces
        self._questions, self._rules, self._secrets = parts.questions, parts.rules, parts.secrets
        self._enabled = settings.thinker_enabled
        self._limits = QueueLimits(settings.max_queued_per_thread, settings.max_queued_messages)
        self._closing = False

    def close(self) -> None:
        """Let no more messages in: the hub is stopping."""
        self._closing = True

    async def receive(self, message: InboundMessage) -> Entered:
        """Store a message once and see to it that it is answered."""
        if not self._enabled:
            raise Unavailable(
                "Conversations are left to an MCP client here (THINKER_ENABLED=false).",
                hint="Use the tools, or set THINKER_ENABLED=true and restart.",
            )
        if self._closing:
            raise Unavailable("Annabelle is shutting down.", hint="Send the message again once it is back.")
        message = message.model_copy(update={"text": self._secrets.masked(message.text)})
        agent_id = self._agent_for(message)
        answered = await self._stop(message) if is_stop(message.text) else self._paused(agent_id, message.id)
        trace_id = current_trace()

        def store(conn: Connection) -> Written[Entered]:
            last = events.last_seq(conn, message.user_id)
            thread = threads.find_or_create(
                conn, channel=message.channel, chat_id=message.chat_id, user_id=message.user_id, agent_id=agent_id
            )
            received = messages.receive(conn, thread, message, self._limits, trace_id=trace_id)
            if received.duplicate:
                return Written(Entered(received.message, True, last), message.user_id)
            # In the same transaction: a rule that was stated in a stored message holds, whatever happens next.
            ruled = self._rules.notice(conn, message, Place(message.user_id, thread.id, message.id))
            if answered is None:
                return Written(Entered(received.message, False, last), message.user_id, ruled)
            told = deliver(conn, message.id, answered, remember=False)
            return Written(Entered(told.result.message, False, last), message.user_id, (*ruled, *told.events))

        entered = await self._log.transact(store)
        failpoint("hub.after_receive")
        stored = entered.message
        self._traces.write(
            "message.received", {"message_id": stored.id, "agent_id": agent_id, "channel": stored.channel}
        )
        if stored.state == "queued":
            await self._lanes.offer(stored.thread_id)
            failpoint("hub.after_claim")
        return entered

    async def cancel(self, message_id: str, user_id: str) -> None:
        """Stop a person's message: one that waits is finished here, one that runs is interrupted at its thinker."""
        stopped = TurnResult(
            message_id=message_id, success=False, error=TurnCancelled("The turn was stopped.").body(current_trace())
        )

        def look(conn: Connection) -> Written[tuple[StoredMessage, Thread]]:
            message = messages.get(conn, message_id, user_id)
            if message.kind != "inbound":
                raise NotFound(f"{message_id} is an answer; ask for the message it answers.")
            thread = threads.load(conn, message.thread_id)
            written = deliver(conn, message_id, stopped).events if message.state == "queued" else ()
            return Written((message, thread), user_id, written)

        message, thread = await self._log.transact(look)
        if message.state == "queued":
            self._finished.tell(message_id)
        if message.state in ("done", "failed"):
            # A turn that waits for the person is not wanted any more either.
            await self._questions.of_message(message_id, _STOPPED)
        if message.state != "running":
            return
        await self._stopper.end_turn(message_id, thread.agent_id)

    async def _stop(self, message: InboundMessage) -> TurnResult:
        """Stop what runs and waits in the chat of a `/stop`, which is answered here and costs no model call.

        One that comes again stops nothing: what runs by then was asked for after it.
        """
        chat = (message.channel, message.chat_id, message.user_id)

        def look(conn: Connection) -> Written[tuple[bool, list[str]]]:
            again = messages.known_as(conn, message) is not None
            return Written((again, [] if again else messages.unfinished_in(conn, *chat)), message.user_id)

        again, wanted = await self._log.transact(look)
        for message_id in wanted:
            await self.cancel(message_id, message.user_id)
        where = Where(channel=message.channel, chat_id=message.chat_id, user_id=message.user_id)
        taken_back = 0 if again else await self._questions.withdraw(where, _STOPPED)
        return TurnResult(message_id=message.id, success=True, text=stop_answer(len(wanted), taken_back))

    def _agent_for(self, message: InboundMessage) -> str:
        if message.agent_id is None:
            return self._agents.config.bound(message.channel, message.chat_id).agent_id
        agent = self._agents.agent(message.agent_id)
        if not agent.enabled:
            raise Unavailable(f"The agent {agent.agent_id} is disabled.", hint="Enable it in agents.json.")
        return agent.agent_id

    def _paused(self, agent_id: str, message_id: str) -> TurnResult | None:
        try:
            self._agents.check_paused(agent_id)
        except AgentPaused as paused:
            return TurnResult(message_id=message_id, success=False, error=paused.body(current_trace()))
        return None
