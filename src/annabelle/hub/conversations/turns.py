"""Running turns, requests waiting for replies, and the gate that pauses work for maintenance."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Generator
from contextlib import AbstractContextManager

from sqlalchemy import Connection

from annabelle.agents import find_kind
from annabelle.core.contract import TurnResult
from annabelle.core.errors import NotAllowed, NotFound
from annabelle.core.tools import CallContext
from annabelle.store import messages, threads
from annabelle.store.database import Database
from annabelle.store.messages import StoredMessage


def load_call_context(conn: Connection, message: StoredMessage) -> CallContext:
    """The context of a turn's tool calls, from the stored message only: nothing the caller says."""
    thread = threads.load_thread(conn, message.thread_id)
    usual = CallContext(
        caller="agent",
        agent_id=thread.agent_id,
        user_id=message.user_id,
        thread_id=thread.id,
        chat_id=message.chat_id,
        channel=message.channel,
        message_id=message.id,
        trace_id=message.trace_id,
    )
    return usual.model_copy(update=find_kind(message.channel).load_context(conn, message))


class WorkCounter:
    """Counts the work in progress."""

    def __init__(self) -> None:
        self.running = 0
        self._changed = asyncio.Event()

    @contextlib.contextmanager
    def counted(self) -> Generator[None]:
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._changed.set()

    async def wait_none(self, timeout: float) -> bool:
        """Wait until nothing runs. Returns False on timeout."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self.running:
                    self._changed.clear()
                    await self._changed.wait()
        return not self.running


class ActiveTurns:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._contexts: dict[str, CallContext] = {}
        self._cancelled: set[str] = set()
        self._abandoned: dict[str, asyncio.Event] = {}
        self._abandoned_tasks: set[asyncio.Task[TurnResult]] = set()
        self._on_cancel: list[Callable[[str], None]] = []
        self._busy = WorkCounter()

    @property
    def running(self) -> int:
        """Number of messages being worked on, from the start of the turn to the delivery."""
        return self._busy.running

    def is_idle(self) -> bool:
        return self._busy.running == 0

    def busy(self) -> AbstractContextManager[None]:
        return self._busy.counted()

    @contextlib.contextmanager
    def open(self, context: CallContext) -> Generator[None]:
        assert context.message_id is not None
        self._contexts[context.message_id] = context
        self._abandoned[context.message_id] = asyncio.Event()
        try:
            yield
        finally:
            del self._contexts[context.message_id]
            del self._abandoned[context.message_id]
            self._cancelled.discard(context.message_id)

    @contextlib.contextmanager
    def lend_to_subagent(self, turn_id: str, context: CallContext) -> Generator[None]:
        """While inside, a subagent's turn acts for the message of its parent agent."""
        self._contexts[turn_id] = context
        try:
            yield
        finally:
            self._contexts.pop(turn_id, None)

    def cancel(self, message_id: str) -> None:
        """Mark a claimed message as cancelled, whether or not its turn has begun."""
        self._cancelled.add(message_id)
        for listener in self._on_cancel:
            listener(message_id)

    def abandon(self, message_id: str) -> None:
        """Stop waiting for the thinker of a turn. A turn that is not running is left alone."""
        event = self._abandoned.get(message_id)
        if event is not None:
            event.set()

    async def run_unless_abandoned(self, message_id: str, work: Coroutine[None, None, TurnResult]) -> TurnResult | None:
        """Run a turn. Returns None as soon as the turn is abandoned."""
        working = asyncio.create_task(work)
        leaving = asyncio.create_task(self._abandoned[message_id].wait())
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            return await working if working.done() else None
        finally:
            leaving.cancel()
            if not working.done():
                # Not awaited: a hanging call may keep it from ending.
                working.cancel()
                self._abandoned_tasks.add(working)
                working.add_done_callback(self._drop_task)

    def _drop_task(self, left: asyncio.Task[TurnResult]) -> None:
        self._abandoned_tasks.discard(left)
        if not left.cancelled():
            left.exception()  # retrieved, or asyncio would log it

    def running_for(self, agents: Collection[str]) -> dict[str, str]:
        """The agent of each message that these agents are working on, by message id."""
        open_turns = ((turn, context.agent_id) for turn, context in self._contexts.items() if turn in self._abandoned)
        return {turn: agent_id for turn, agent_id in open_turns if agent_id is not None and agent_id in agents}

    def lent_to(self, agents: Collection[str]) -> set[str]:
        """The messages that subagents of these agents work for, answered or not."""
        lent = (context for turn, context in self._contexts.items() if turn not in self._abandoned)
        return {context.message_id for context in lent if context.message_id and context.agent_id in agents}

    def on_cancel(self, listener: Callable[[str], None]) -> None:
        self._on_cancel.append(listener)

    def cancelled(self, message_id: str) -> bool:
        return message_id in self._cancelled

    async def context(self, message_id: str, agent_id: str) -> CallContext:
        """The context of an agent's own running turn. Raises NotAllowed for any other."""
        context = self._contexts.get(message_id) or await self._stored(message_id)
        if context is None or context.agent_id != agent_id:
            raise NotAllowed("This is not a running turn of this agent.")
        if context.message_id in self._cancelled:
            raise NotAllowed("The turn was stopped.")
        return context

    async def _stored(self, message_id: str) -> CallContext | None:
        # After both crashed, a thinker may resume a turn before this process does.
        def load(conn: Connection) -> CallContext | None:
            message = messages.load_message(conn, message_id)
            return load_call_context(conn, message) if message.state == "running" else None

        try:
            return await self._database.read(load)
        except NotFound:
            return None

    async def wait_all_over(self, timeout: float) -> bool:
        """Wait until no message is being worked on. Returns False on timeout."""
        return await self._busy.wait_none(timeout)


class ReplyWaiters:
    """Requests waiting for a message to finish. Once woken, they read the result from the store."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}

    @contextlib.contextmanager
    def watch(self, message_id: str) -> Generator[asyncio.Event]:
        """An event that is set when the message is finished. Check the message after entering, then wait."""
        event = asyncio.Event()
        waiting = self._waiting.setdefault(message_id, set())
        waiting.add(event)
        try:
            yield event
        finally:
            waiting.discard(event)
            if not waiting:
                self._waiting.pop(message_id, None)

    def notify(self, message_id: str) -> None:
        for event in self._waiting.get(message_id, ()):
            event.set()

    def notify_all(self) -> None:
        for message_id in list(self._waiting):
            self.notify(message_id)


class MaintenanceGate:
    """Pauses background work that moves people's data. Turns are paused by the thread queue instead."""

    def __init__(self) -> None:
        self._work = WorkCounter()
        self._open = asyncio.Event()
        self._open.set()

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """Waits until the gate is open, and counts as work while inside."""
        while not self._open.is_set():
            await self._open.wait()
        with self._work.counted():
            yield

    def pause(self) -> None:
        self._open.clear()

    def unpause(self) -> None:
        self._open.set()

    async def wait_idle(self, timeout: float) -> bool:
        """Wait until no work runs. Returns False on timeout."""
        return await self._work.wait_none(timeout)
