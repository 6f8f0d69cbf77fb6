"""Accepts messages from every channel: masks secrets, stores each message once and starts its turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from sqlalchemy import Connection

from annabelle.core.connections import KINDS, connection_file
from annabelle.core.contract import TurnResult
from annabelle.core.errors import AgentPaused, NotAllowed, NotFound, TurnCancelled, Unavailable
from annabelle.core.failpoints import failpoint
from annabelle.core.home import Home
from annabelle.core.messages import SKILLS, InboundMessage
from annabelle.core.secrets.redactor import Redactor, is_secret_name, passwords_in_url
from annabelle.core.settings import Settings
from annabelle.core.trace import current_trace
from annabelle.durable.thread_queue import ThreadQueue
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.agents.stopper import Stopper
from annabelle.hub.base import HubStorage
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.hub.conversations.message_workflow import deliver
from annabelle.hub.conversations.turns import ReplyWaiters
from annabelle.hub.trust.rules import RuleOrigin, StandingRules
from annabelle.language.templates import packaged_templates
from annabelle.store import messages, threads, tool_calls
from annabelle.store.approvals import OpenQuestionFilter
from annabelle.store.messages import QueueLimits, StoredMessage
from annabelle.store.threads import Thread
from annabelle.store.tool_calls import SeenToolResult

STOP: Final = "/stop"


def is_stop_command(text: str) -> bool:
    return text.strip().casefold() == STOP


def stop_answer(stopped: int, taken_back: int = 0) -> str:
    """The answer to `/stop`: how many turns were stopped and how many questions withdrawn."""
    if not stopped and not taken_back:
        return "Nothing is running here."
    questions = "1 question was" if taken_back == 1 else f"{taken_back} questions were"
    back = f" {questions} taken back." if taken_back else ""
    return ("Stopped." if stopped <= 1 else f"Stopped, with {stopped - 1} more that waited.") + back


class HomeSecrets:
    """Teaches the redactor the secrets of connected accounts, and masks them in messages."""

    def __init__(self, home: Home, redact: Redactor, database_url: str | None = None) -> None:
        self._redact = redact
        self._files = {connection_file(home, kind): -1 for kind in KINDS}
        if database_url is not None:
            redact.learn(passwords_in_url(database_url))
        self.learn_new_secrets()

    def learn_new_secrets(self) -> None:
        for file, seen in self._files.items():
            try:
                changed = file.stat().st_mtime_ns
                if changed == seen:
                    continue
                kept: object = json.loads(file.read_bytes())
            except (OSError, ValueError):
                continue  # the server that uses the account reports the problem
            self._redact.learn(_secret_values(kept))
            self._files[file] = changed

    def mask_text(self, text: str) -> str:
        """Masks secrets of this home that a person pasted, before the message is stored."""
        self.learn_new_secrets()
        return self._redact.distinctive_secrets.mask(text)


def _secret_values(kept: object) -> Iterator[str]:
    if isinstance(kept, dict):
        for name, value in cast("dict[str, object]", kept).items():
            if isinstance(value, str) and is_secret_name(name):
                yield value


_STOPPED: Final = "You stopped it"


@dataclass(frozen=True, slots=True)
class AdmittedMessage:
    """A stored message. Its events have numbers above `last_event_id`."""

    message: StoredMessage
    duplicate: bool
    last_event_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageGateDeps:
    storage: HubStorage
    agents: AgentManager
    thread_queue: ThreadQueue
    stopper: Stopper
    reply_waiters: ReplyWaiters
    rules: StandingRules
    secrets: HomeSecrets


class MessageGate:
    def __init__(self, settings: Settings, parts: MessageGateDeps) -> None:
        self._events, self._traces = parts.storage.events, parts.storage.traces
        self._agents, self._thread_queue, self._stopper = parts.agents, parts.thread_queue, parts.stopper
        self._reply_waiters, self._rules, self._secrets = parts.reply_waiters, parts.rules, parts.secrets
        self._enabled, self._templates = settings.thinker_enabled, settings.message_templates
        self._limits = QueueLimits(settings.max_queued_per_thread, settings.max_queued_messages)
        self._closing = False

    def close(self) -> None:
        self._closing = True

    async def receive(self, message: InboundMessage) -> AdmittedMessage:
        """Store a message once and start its turn, or answer it here if it is `/stop` or its agent is paused."""
        if not self._enabled:
            raise Unavailable(
                "Conversations are left to an MCP client here (THINKER_ENABLED=false).",
                hint="Use the tools, or set THINKER_ENABLED=true and restart.",
            )
        if message.channel == SKILLS:
            raise NotAllowed("Nobody can speak in the runs of skills.", hint="Use another channel.", field="channel")
        if self._closing:
            raise Unavailable("Annabelle is shutting down.", hint="Send the message again once it is back.")
        message = message.model_copy(update={"text": self._secrets.mask_text(message.text)})
        agent_id = self._agent_for(message)
        stopped = await self._stop_chat(message) if self._asks_to_stop(message.text) else None
        answered = stopped or self._paused_result(agent_id, message.id)
        trace_id = current_trace()

        def store_message(conn: Connection) -> WriteResult[AdmittedMessage]:
            last = threads.last_event_number(conn, message.user_id)
            thread = threads.find_or_create_thread(
                conn, channel=message.channel, chat_id=message.chat_id, user_id=message.user_id, agent_id=agent_id
            )
            received = messages.queue_message(conn, thread, message, self._limits, trace_id=trace_id)
            if received.duplicate:
                return WriteResult(AdmittedMessage(received.message, True, last), message.user_id)
            # In the same transaction, so a rule stated in a stored message always holds.
            place = RuleOrigin(message.user_id, thread.id, message.id)
            ruled = self._rules.add_stated_rules(conn, message, place) if message.source == "user" else []
            if message.source != "user":
                seen = SeenToolResult(f"message of {message.sender_id}", message.user_id, agent_id, message.id)
                tool_calls.note_untrusted(conn, seen, {"text": message.text, "source": "external"})
            if answered is None:
                return WriteResult(AdmittedMessage(received.message, False, last), message.user_id, ruled)
            told = deliver(conn, message.id, answered, remember=False)
            return WriteResult(
                AdmittedMessage(told.result.message, False, last), message.user_id, (*ruled, *told.events)
            )

        entered = await self._events.transact(store_message)
        failpoint("hub.after_receive")
        stored = entered.message
        self._traces.write(
            "message.received", {"message_id": stored.id, "agent_id": agent_id, "channel": stored.channel}
        )
        if stored.state == "queued":
            await self._thread_queue.start_next(stored.thread_id)
            failpoint("hub.after_claim")
        return entered

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

        message, thread = await self._events.transact(cancel_if_queued)
        if message.state == "queued":
            self._reply_waiters.notify(message_id)
        if message.state in ("done", "failed"):
            # The turn may be waiting for an approval.
            await self._stopper.withdrawal.withdraw_for_message(message_id, _STOPPED)
        if message.state != "running":
            return
        await self._stopper.end_turn(message_id, thread.agent_id)

    def _asks_to_stop(self, text: str) -> bool:
        return is_stop_command(text) or (self._templates and packaged_templates().is_stop(text))

    async def _stop_chat(self, message: InboundMessage) -> TurnResult | None:
        """Stop everything in the chat of a `/stop`. A repeated one stops nothing: later turns came after it.

        "stop" and the like are the same while something runs, and otherwise part of the conversation (INT-01).
        """
        chat = (message.channel, message.chat_id, message.user_id)

        def find_unfinished(conn: Connection) -> WriteResult[tuple[bool, list[str]]]:
            again = messages.find_known_message(conn, message) is not None
            return WriteResult((again, [] if again else messages.list_unfinished_in_chat(conn, *chat)), message.user_id)

        again, wanted = await self._events.transact(find_unfinished)
        for message_id in wanted:
            await self.cancel(message_id, message.user_id)
        where = OpenQuestionFilter(channel=message.channel, chat_id=message.chat_id, user_id=message.user_id)
        taken_back = 0 if again else await self._stopper.withdrawal.withdraw(where, _STOPPED)
        idle = not (again or wanted or taken_back)
        if idle and not is_stop_command(message.text):
            return None
        return TurnResult(message_id=message.id, success=True, text=stop_answer(len(wanted), taken_back))

    def _agent_for(self, message: InboundMessage) -> str:
        if message.agent_id is None:
            return self._agents.registry.config.agent_for_chat(message.channel, message.chat_id).agent_id
        agent = self._agents.registry.agent(message.agent_id)
        if not agent.enabled:
            raise Unavailable(f"The agent {agent.agent_id} is disabled.", hint="Enable it in agents.json.")
        return agent.agent_id

    def _paused_result(self, agent_id: str, message_id: str) -> TurnResult | None:
        try:
            self._agents.check_paused(agent_id)
        except AgentPaused as paused:
            return TurnResult(message_id=message_id, success=False, error=paused.body(current_trace()))
        return None
