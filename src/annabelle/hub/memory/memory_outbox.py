"""Sends every delivered turn to the memory server once, after delivery and without delaying it (MEM-12)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from sqlalchemy import Connection

from annabelle.core.background import BackgroundTasks
from annabelle.core.backoff import backoff_seconds
from annabelle.core.errors import (
    AnnabelleError,
    NotFound,
    OutcomeUnknown,
    ScannerDown,
    SecurityBlocked,
    StorageTrouble,
    ToolTimeout,
    Unavailable,
)
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import OWNER, StoredEvent
from annabelle.core.trace import use_trace
from annabelle.core.trust import Provenance
from annabelle.hub.conversations.turns import MaintenanceGate
from annabelle.hub.memory.memory_client import DeliveredTurn, MemoryClient, MemoryOwner
from annabelle.policy.intent.own_words import holds_others
from annabelle.policy.provenance import trust_after
from annabelle.store import memory_queue, message_state, messages, tool_calls
from annabelle.store.database import Database
from annabelle.store.memory_queue import UnstoredTurn
from annabelle.store.messages import StoredMessage

_log = logging.getLogger(__name__)

BATCH: Final = 20
FIRST_WAIT_SECONDS: Final = 0.5
LONGEST_WAIT_SECONDS: Final = 60.0
REFUSALS: Final = 3
_Turn = tuple[MemoryOwner, DeliveredTurn]
# Storing a turn is idempotent, so an unknown outcome is retried too.
_PASSING = (Unavailable, StorageTrouble, ToolTimeout, OutcomeUnknown, ScannerDown)


class MemoryOutbox:
    """One task, woken at start and by deliveries. Its delays grow while the memory is unavailable."""

    def __init__(
        self,
        database: Database,
        memory: MemoryClient,
        ready: Callable[[], Awaitable[None]],
        owner_name: str = "",
        quiet: MaintenanceGate | None = None,
    ) -> None:
        self._database, self._memory, self._ready, self._owner_name = database, memory, ready, owner_name
        self._maintenance = quiet or MaintenanceGate()
        self._woken = asyncio.Event()
        self._idle = asyncio.Event()
        self._tasks = BackgroundTasks()

    def start(self) -> None:
        """Begin with the turns left by the last process."""
        self._woken.set()
        self._tasks.start(self._run())

    def on_events(self, events: Sequence[StoredEvent]) -> None:
        """Wake up when a turn was delivered, or ended because its question was closed."""
        if any(event.type == "done" or (event.type == "message" and "ended" in event.data) for event in events):
            self.wake()

    def wake(self) -> None:
        self._idle.clear()
        self._woken.set()

    async def stop(self) -> None:
        """Stop. The next start stores the rest."""
        await self._tasks.stop()

    async def all_stored(self, timeout: float) -> bool:
        """Wait until every turn is stored. Returns False on timeout."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), timeout)
        return self._idle.is_set()

    async def _run(self) -> None:
        await self._ready()
        failed = 0
        while True:
            if not failed:
                await self._woken.wait()
            self._woken.clear()
            try:
                while await self._store_batch():
                    pass
                failed = 0
                if not self._woken.is_set():
                    self._idle.set()
                continue
            except _PASSING as trouble:
                _log.warning("The memory does not take what was said yet: %s", trouble.message)
            except Exception:  # noqa: BLE001  the edge of a task: the table keeps the turns
                _log.exception("What was said could not be handed to the memory")
            failed += 1
            await asyncio.sleep(backoff_seconds(failed, FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS))

    async def _store_batch(self) -> bool:
        """Store waiting turns in order. Returns whether there may be more."""

        def load_waiting(conn: Connection) -> list[tuple[UnstoredTurn, _Turn | None]]:
            return [
                (row, _load_turn(conn, row, self._owner_name)) for row in memory_queue.list_unstored_turns(conn, BATCH)
            ]

        # Covers reading and storing, so that a text is not stored again while it is forgotten.
        async with self._maintenance.working():
            waiting = await self._database.read(load_waiting)
            for row, turn in waiting:
                if turn is not None:
                    await self._store(row, *turn)
                await self._database.write(
                    lambda conn, row=row: memory_queue.remove_unstored_turn(conn, row.message_id)
                )
        return len(waiting) == BATCH

    async def _store(self, row: UnstoredTurn, owned: MemoryOwner, turn: DeliveredTurn) -> None:
        failpoint("hub.before_remember")
        try:
            with use_trace(owned.trace_id):
                await self._memory.store_turn(owned, turn)
        except _PASSING:
            raise
        except AnnabelleError as refusal:
            # The guardian would block the turn again: drop it, so that later turns need not wait.
            if row.attempts + 1 < REFUSALS and not isinstance(refusal, SecurityBlocked):
                await self._database.write(lambda conn: memory_queue.count_failed_try(conn, row.message_id))
                raise Unavailable(refusal.message) from refusal
            _log.error("The memory refuses the turn %s, which is left out: %s", row.message_id, refusal.message)
        failpoint("hub.after_remember")


def _load_turn(conn: Connection, row: UnstoredTurn, owner_name: str) -> _Turn | None:
    """The delivered turn, None if it no longer exists or is another agent's, which is no memory of the person's."""
    try:
        last = messages.load_message(conn, row.message_id)
        message = message_state.load_root_message(conn, last)  # a resumed turn belongs to its first message
    except NotFound:
        return None
    if message.source == "outside_agent":
        return None
    replies = [reply for reply in messages.list_replies(conn, last) if _is_answer(reply)]
    # An answer about a pasted text is only as trustworthy as that text.
    pasted = ("message",) if holds_others(message.content) else ()
    origins = [*tool_calls.list_untrusted_tools(conn, last.id), *pasted]
    owned = MemoryOwner(
        user_id=row.user_id,
        agent_id=row.agent_id,
        thread_id=row.thread_id,
        message_id=message.id,
        channel=message.channel,
        chat_id=message.chat_id,
        trace_id=message.trace_id,
    )
    turn = DeliveredTurn(
        said=message.content,
        answered="\n\n".join(reply.content for reply in replies),
        speaker=owner_name if owner_name and message.sender_id == OWNER else message.sender_id,
        said_at=message.created_at,
        tools=tuple(
            dict.fromkeys(tool for one in _message_chain(conn, last) for tool in tool_calls.list_tools_used(conn, one))
        ),
        provenance=Provenance(trust=trust_after(origins), origins=tuple(origins)),
    )
    return owned, turn


def _is_answer(reply: StoredMessage) -> bool:
    """Whether it is not a question to the person."""
    return reply.source == "agent" and "approvals" not in reply.metadata


def _message_chain(conn: Connection, last: StoredMessage) -> list[str]:
    """The messages of a turn that was parked and resumed, first one first."""
    parked = message_state.resumed_message_id(last)
    return [last.id] if parked is None else [*_message_chain(conn, messages.load_message(conn, parked)), last.id]
