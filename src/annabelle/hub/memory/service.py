"""Everything the hub does for the memory, made and run together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from annabelle.core.errors import AnnabelleError
from annabelle.core.messages import OWNER
from annabelle.core.settings import Settings
from annabelle.core.trace import TraceFile
from annabelle.durable.engine import Durable
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.agents.thinker_calls import ThinkerQuestions
from annabelle.hub.conversations.turns import MaintenanceGate
from annabelle.hub.memory.fact_extraction import (
    FactExtractionDeps,
    FactExtractionWorkflow,
    backfill_tool,
    request_for_thread,
)
from annabelle.hub.memory.fact_tidier import FactTidier, synthesize_tool
from annabelle.hub.memory.idle_threads import IdleThreads
from annabelle.hub.memory.memory_client import MemoryClient, MemoryOwner
from annabelle.hub.memory.memory_outbox import MemoryOutbox
from annabelle.store.database import Database
from annabelle.store.memory_queue import IdleThread
from annabelle.store.messages import StoredMessage
from annabelle.toolbox.catalogue import NativeTool
from annabelle.toolbox.facade import Toolbox

_OPEN_AFTER_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class MemoryDeps:
    """What of the hub it works with."""

    settings: Settings
    database: Database
    durable: Durable
    toolbox: Toolbox
    agents: AgentManager
    traces: TraceFile
    ready: Callable[[], Awaitable[None]]
    maintenance: MaintenanceGate


class HubMemory:
    """The keeper of turns, the threads that rest, and what learns and tidies."""

    def __init__(self, around: MemoryDeps) -> None:
        settings, agents = around.settings, around.agents
        self.maintenance, self.tools = around.maintenance, MemoryClient(around.toolbox)
        thinking = ThinkerQuestions(agents)
        self.outbox = MemoryOutbox(around.database, self.tools, around.ready, settings.user_name, around.maintenance)
        self.extraction = FactExtractionWorkflow(
            FactExtractionDeps(around.durable, self.tools, thinking, around.traces, settings, around.ready)
        )
        self.tidier = FactTidier(self.tools, thinking)
        self._agents = agents
        learning = settings.fact_extraction_enabled and settings.thinker_enabled
        self.rest_seconds = settings.fact_extraction_idle_seconds if learning else None
        self._idle_threads = IdleThreads(around.database, agents, settings.fact_extraction_idle_seconds, self._on_idle)
        self._warm = settings.thinker_warm_spare and settings.thinker_enabled
        self._opening: asyncio.Task[None] | None = None

    def native_tools(self) -> list[NativeTool]:
        return [backfill_tool(self.extraction, self._agents), synthesize_tool(self.tidier, self._agents)]

    async def start(self) -> None:
        """Go on with what the last process left."""
        self.outbox.start()
        if self.rest_seconds is not None:
            await self._idle_threads.start()
        if self._warm:
            self._opening = asyncio.create_task(self._warm_up())

    async def _warm_up(self) -> None:
        """Let the memory open its database now, like the spare thinker: the first message would wait for it."""
        await asyncio.sleep(_OPEN_AFTER_SECONDS)
        with contextlib.suppress(AnnabelleError):  # whoever needs it next is told
            await self.tools.list_known_facts(MemoryOwner(OWNER, self._agents.config.default.agent_id), 1)

    def on_delivered(self, message: StoredMessage) -> None:
        """A turn is over: it has to be stored, and its thread rests."""
        self.outbox.wake()
        if self.rest_seconds is not None:
            self._idle_threads.restart_timer(message.thread_id)

    async def stop(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        await self._idle_threads.stop()
        await self.outbox.stop()

    async def _on_idle(self, idle: IdleThread) -> None:
        await self.extraction.begin(
            request_for_thread(idle.thread_id, idle.user_id, idle.agent_id, idle.last_message_id)
        )
