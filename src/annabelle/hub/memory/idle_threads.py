"""Extracts facts from a thread once it has been idle long enough, measured by a monotonic clock (MEM-07)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from sqlalchemy import Connection

from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AgentPaused, AnnabelleError
from annabelle.core.messages import StoredEvent, now
from annabelle.core.settings import Settings
from annabelle.hub.agents.manager import AgentManager
from annabelle.store import memory_queue
from annabelle.store.database import Database
from annabelle.store.memory_queue import IdleThread

_log = logging.getLogger(__name__)
Learn = Callable[[IdleThread], Awaitable[None]]


def idle_seconds(settings: Settings) -> float | None:
    """How long a thread must be idle before facts are extracted, None if extraction is off."""
    enabled = settings.fact_extraction_enabled and settings.thinker_enabled
    return settings.fact_extraction_idle_seconds if enabled else None


class IdleThreads:
    """One timer per thread, restarted by every delivery."""

    def __init__(self, database: Database, agents: AgentManager, seconds: float, learn: Learn) -> None:
        self._database, self._agents, self._seconds, self._learn = database, agents, seconds, learn
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks = BackgroundTasks()
        self._closed = False

    async def start(self) -> None:
        """Restore the timers of the last process."""
        for idle in await self._database.read(memory_queue.list_idle_threads):
            left = (idle.due_at - now()).total_seconds()
            self._set_timer(idle.thread_id, min(max(left, 0.0), self._seconds))

    def on_events(self, events: Sequence[StoredEvent]) -> None:
        for event in events:
            if event.type == "done" and event.data.get("success"):
                self.restart_timer(event.thread_id)

    def restart_timer(self, thread_id: str) -> None:
        self._set_timer(thread_id, self._seconds)

    async def stop(self) -> None:
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        await self._tasks.stop()

    def _set_timer(self, thread_id: str, seconds: float) -> None:
        if self._closed:
            return
        known = self._timers.pop(thread_id, None)
        if known is not None:
            known.cancel()
        self._timers[thread_id] = asyncio.get_running_loop().call_later(seconds, self._due, thread_id)

    def _due(self, thread_id: str) -> None:
        self._timers.pop(thread_id, None)
        self._tasks.start(self._learn_if_idle(thread_id))

    async def _learn_if_idle(self, thread_id: str) -> None:
        """Start an extraction. If the thread is busy or its agent paused, wait for another idle period."""

        def load_idle(conn: Connection) -> tuple[IdleThread | None, bool]:
            return memory_queue.get_idle_thread(conn, thread_id), memory_queue.is_thread_busy(conn, thread_id)

        try:
            idle, busy = await self._database.read(load_idle)
            if idle is None:
                return
            if self._agents.registry.find(idle.agent_id) is not None:
                if busy or not self._may_ask(idle.agent_id):
                    self._retry_later(thread_id)
                    return
                await self._learn(idle)
            await self._database.write(lambda conn: memory_queue.remove_idle_thread(conn, idle))
        except AnnabelleError as error:
            _log.warning("Learning from %s is put off: %s", thread_id, error.message)
            self._retry_later(thread_id)
        except Exception:  # noqa: BLE001  the edge of a task that is not awaited
            _log.exception("Learning from %s failed", thread_id)
            self._retry_later(thread_id)

    def _retry_later(self, thread_id: str) -> None:
        if thread_id not in self._timers:
            self._set_timer(thread_id, self._seconds)

    def _may_ask(self, agent_id: str) -> bool:
        agent = self._agents.registry.find(agent_id)
        if agent is None or not agent.enabled:
            return False
        try:
            self._agents.check_paused(agent_id)
        except AgentPaused:
            return False
        return True
