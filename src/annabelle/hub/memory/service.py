"""Creates and runs the hub's memory components."""

from __future__ import annotations

import asyncio
import contextlib

from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AnnabelleError
from annabelle.core.messages import OWNER
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.agents.thinker_calls import ThinkerQuestions
from annabelle.hub.base import HubBase, HubStorage
from annabelle.hub.conversations.turns import MaintenanceGate
from annabelle.hub.forgetting.forget_service import ForgetService
from annabelle.hub.goals.note_service import NoteService
from annabelle.hub.memory.fact_extraction import (
    FactExtractionWorkflow,
    backfill_tool,
    request_for_thread,
)
from annabelle.hub.memory.fact_tidier import FactTidier, synthesize_tool
from annabelle.hub.memory.idle_threads import IdleThreads, idle_seconds
from annabelle.hub.memory.memory_client import MemoryClient, MemoryOwner
from annabelle.hub.memory.memory_outbox import MemoryOutbox
from annabelle.store.memory_queue import IdleThread
from annabelle.toolbox.catalogue import NativeTool
from annabelle.toolbox.facade import Toolbox

_OPEN_AFTER_SECONDS = 1.0


class HubMemory:
    def __init__(
        self,
        *,
        base: HubBase,
        storage: HubStorage,
        toolbox: Toolbox,
        agents: AgentManager,
        maintenance: MaintenanceGate,
        forgetting: ForgetService,
        notes: NoteService,
    ) -> None:
        settings, ready = base.settings, base.lifecycle.wait_ready
        self.maintenance, self.forgetting, self.tools = maintenance, forgetting, MemoryClient(toolbox)
        self.notes = notes
        thinking = ThinkerQuestions(agents)
        self.outbox = MemoryOutbox(
            storage.database, self.tools, ready, owner_name=settings.user_name, quiet=maintenance
        )
        self.extraction = FactExtractionWorkflow(
            durable=storage.durable,
            memory=self.tools,
            thinker=thinking,
            traces=storage.traces,
            settings=settings,
            ready=ready,
        )
        self.tidier = FactTidier(self.tools, thinking)
        self._registry = agents.registry
        self._idle_threads: IdleThreads | None = None
        storage.events.subscribe(self.outbox.on_events)
        seconds = idle_seconds(settings)
        if seconds is not None:
            self._idle_threads = IdleThreads(storage.database, agents, seconds, self._on_idle)
            storage.events.subscribe(self._idle_threads.on_events)
        self._warm = settings.thinker_warm_spare and settings.thinker_enabled
        self._opening = BackgroundTasks()

    def native_tools(self) -> list[NativeTool]:
        return [backfill_tool(self.extraction, self._registry), synthesize_tool(self.tidier, self._registry)]

    async def start(self) -> None:
        self.outbox.start()
        if self._idle_threads is not None:
            await self._idle_threads.start()
        if self._warm:
            self._opening.start(self._warm_up())

    async def _warm_up(self) -> None:
        """Make the memory open its database now, so that the first message need not wait for it."""
        await asyncio.sleep(_OPEN_AFTER_SECONDS)
        with contextlib.suppress(AnnabelleError):  # the next caller gets the error
            await self.tools.list_known_facts(MemoryOwner(OWNER, self._registry.config.default.agent_id), 1)

    async def stop(self) -> None:
        self._opening.cancel()
        if self._idle_threads is not None:
            await self._idle_threads.stop()
        await self.outbox.stop()

    async def _on_idle(self, idle: IdleThread) -> None:
        await self.extraction.begin(
            request_for_thread(idle.thread_id, idle.user_id, idle.agent_id, idle.last_message_id)
        )
