"""Accepts messages from every channel: masks secrets, stores each message once and starts its turn."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, cast
from weakref import WeakValueDictionary

from sqlalchemy import Connection

from annabelle.agents import find_kind, is_chat
from annabelle.core.connections import KINDS, connection_file
from annabelle.core.contract import TurnResult
from annabelle.core.errors import AgentPaused, NotAllowed, Unavailable
from annabelle.core.failpoints import failpoint
from annabelle.core.home import Home
from annabelle.core.messages import InboundMessage
from annabelle.core.secrets.redactor import Redactor, is_secret_name, passwords_in_url
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.core.trace import current_trace
from annabelle.durable.thread_queue import ThreadQueue
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.agents.stopper import Stopper
from annabelle.hub.base import HubStorage
from annabelle.hub.commands.command import CommandCall
from annabelle.hub.commands.registry import CommandRegistry, ParsedCommand
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.hub.conversations.message_workflow import deliver
from annabelle.hub.conversations.turn_canceller import TurnCanceller, describe_stopped
from annabelle.hub.trust.rules import RuleOrigin, StandingRules
from annabelle.language.templates import packaged_templates
from annabelle.store import messages, threads, tool_calls
from annabelle.store.messages import QueueLimits, StoredMessage
from annabelle.store.threads import Thread
from annabelle.store.tool_calls import SeenToolResult

_UNLIMITED: Final = QueueLimits(sys.maxsize, sys.maxsize)
"""What is answered at once does not wait in the queue, however full it is."""


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
    rules: StandingRules
    secrets: HomeSecrets
    commands: CommandRegistry


@dataclass(frozen=True, slots=True)
class _HubAnswer:
    """An answer that needs no turn. `about` is added to its metadata."""

    result: TurnResult
    about: JsonObject = field(default_factory=dict[str, object])


class MessageGate:
    def __init__(self, settings: Settings, parts: MessageGateDeps) -> None:
        self._database, self._events, self._traces = parts.storage.database, parts.storage.events, parts.storage.traces
        self._agents, self._thread_queue, self.commands = parts.agents, parts.thread_queue, parts.commands
        self._rules, self._secrets = parts.rules, parts.secrets
        self._canceller = TurnCanceller(parts.storage.events, parts.stopper)
        self._enabled, self._templates = settings.thinker_enabled, settings.message_templates
        self._limits = QueueLimits(settings.max_queued_per_thread, settings.max_queued_messages)
        self._chats: WeakValueDictionary[tuple[str, str, str], asyncio.Lock] = WeakValueDictionary()
        self._closing = False

    def close(self) -> None:
        self._closing = True

    async def receive(self, message: InboundMessage) -> AdmittedMessage:
        """Store a message once and start its turn, or answer it here if it is a command or its agent is paused."""
        if not find_kind(message.channel).accepts_messages:
            raise NotAllowed("Nobody can write there.", hint="Use another channel.", field="channel")
        if self._closing:
            raise Unavailable("Annabelle is shutting down.", hint="Send the message again once it is back.")
        message = message.model_copy(update={"text": self._secrets.mask_text(message.text)})
        command = self.commands.find(message)
        if command is None and not self._enabled:
            raise Unavailable(
                "Conversations are left to an MCP client here (THINKER_ENABLED=false).",
                hint="Use the tools, or set THINKER_ENABLED=true and restart.",
            )
        agent_id = await self._agent_for(message)
        if command is None:
            answer = await self._stop_if_asked(message) or self._paused_answer(agent_id, message.id)
            return await self._store(message, agent_id, answer)
        # One after the other in a chat, so that a message that comes twice at once is carried out once.
        async with self._chats.setdefault(_chat_of(message), asyncio.Lock()):
            answer = await self._run_command(command, message, agent_id)
            return await self._store(message.model_copy(update={"source": "command"}), agent_id, answer)

    async def cancel(self, message_id: str, user_id: str) -> None:
        """Stop a user's message: finish it here if it is queued, interrupt its thinker if it runs."""
        await self._canceller.cancel(message_id, user_id)

    async def _store(self, message: InboundMessage, agent_id: str, answer: _HubAnswer | None) -> AdmittedMessage:
        trace_id = current_trace()
        limits = self._limits if answer is None else _UNLIMITED

        def store_message(conn: Connection) -> WriteResult[AdmittedMessage]:
            last = threads.last_event_number(conn, message.user_id)
            thread = threads.find_or_create_thread(
                conn, channel=message.channel, chat_id=message.chat_id, user_id=message.user_id, agent_id=agent_id
            )
            received = messages.queue_message(conn, thread, message, limits, trace_id=trace_id)
            if received.duplicate:
                return WriteResult(AdmittedMessage(received.message, True, last), message.user_id)
            # Afterwards, because one that came before changes nothing. What it refuses is rolled back.
            find_kind(message.channel).admit(conn, message)
            # In the same transaction, so a rule stated in a stored message always holds.
            place = RuleOrigin(message.user_id, thread.id, message.id)
            ruled = self._rules.add_stated_rules(conn, message, place) if message.source == "user" else []
            if message.source not in ("user", "command"):
                seen = SeenToolResult(f"message of {message.sender_id}", message.user_id, agent_id, message.id)
                tool_calls.note_untrusted(conn, seen, {"text": message.text, "source": "external"})
            if answer is None:
                return WriteResult(AdmittedMessage(received.message, False, last), message.user_id, ruled)
            told = deliver(conn, message.id, answer.result, remember=False, about=answer.about)
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

    async def _run_command(self, command: ParsedCommand, message: InboundMessage, agent_id: str) -> _HubAnswer | None:
        """The answer of a command; None if the message came before, so that nothing is done twice."""

        def look(conn: Connection) -> tuple[bool, Thread | None]:
            place = message.model_dump(include={"channel", "chat_id", "user_id"})
            thread = threads.find_open_thread(conn, **place, agent_id=agent_id)
            return messages.find_known_message(conn, message) is not None, thread

        again, thread = await self._database.read(look)
        if again:
            return None
        call = CommandCall(
            user_id=message.user_id,
            agent_id=agent_id,
            channel=message.channel,
            chat_id=message.chat_id,
            message_id=message.id,
            external_id=message.external_id,
            words=command.words,
            rest=command.rest,
            thread_id=None if thread is None else thread.id,
            admin=self.commands.is_admin(message.user_id),
            offered=tuple(self.commands.infos(message.user_id)),
        )
        answer = await self.commands.run(command, message, call)
        result = TurnResult(message_id=message.id, success=True, text=answer.text)
        return _HubAnswer(result, answer.to_metadata(command.name))

    async def _stop_if_asked(self, message: InboundMessage) -> _HubAnswer | None:
        """`stop` and the like are `/stop` while something runs, and otherwise part of the conversation (INT-01)."""
        if not (self._templates and message.source == "user" and packaged_templates().is_stop(message.text)):
            return None
        if await self._database.read(lambda conn: messages.find_known_message(conn, message)) is not None:
            return None  # what was asked for since then goes on
        stopped = await self._canceller.stop_chat(*_chat_of(message))
        if not (stopped.turns or stopped.questions):
            return None
        return _HubAnswer(TurnResult(message_id=message.id, success=True, text=describe_stopped(stopped)))

    async def _agent_for(self, message: InboundMessage) -> str:
        """The one that is named, else that of the goal, else that of the chat."""
        kind, goal = find_kind(message.channel), None
        if not is_chat(message.channel):
            goal = await self._database.read(lambda conn: kind.find_goal(conn, message.chat_id))
        theirs = goal is not None and goal.user_id != message.user_id  # refused when it is stored
        named = message.agent_id if goal is None or theirs else goal.agent_id
        if named is None:
            return self._agents.registry.config.agent_for_chat(message.channel, message.chat_id).agent_id
        agent = self._agents.registry.agent(named)
        if not agent.enabled:
            raise Unavailable(f"The agent {agent.agent_id} is disabled.", hint="Enable it in agents.json.")
        return agent.agent_id

    def _paused_answer(self, agent_id: str, message_id: str) -> _HubAnswer | None:
        try:
            self._agents.check_paused(agent_id)
        except AgentPaused as paused:
            return _HubAnswer(TurnResult(message_id=message_id, success=False, error=paused.body(current_trace())))
        return None


def _chat_of(message: InboundMessage) -> tuple[str, str, str]:
    return message.channel, message.chat_id, message.user_id
