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
from annabelle.durable.durable import Durable
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.flows.learn_facts import LearnFacts, LearnServices, of_thread
from annabelle.hub.memory.keeper import Keeper
from annabelle.hub.memory.memory_tools import MemoryTools, Owned
from annabelle.hub.memory.resting import Resting
from annabelle.hub.memory.thinking import Thinking
from annabelle.hub.memory.tidying import Tidying
from annabelle.hub.quiet import Quiet
from annabelle.hub.tools.memory_extraction import backfill_tool
from annabelle.hub.tools.memory_synthesis import synthesize_tool
from annabelle.store.database import Database
from annabelle.store.idle_threads import IdleThread
from annabelle.store.messages import StoredMessage
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.native import NativeTool

_OPEN_AFTER_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Around:
    """What of the hub it works with."""

    settings: Settings
    database: Database
    durable: Durable
    toolbox: Toolbox
    agents: AgentManager
    traces: TraceFile
    ready: Callable[[], Awaitable[None]]
    quiet: Quiet


class HubMemory:
    """The keeper of turns, the threads that rest, and what learns and tidies."""

    def __init__(self, around: Around) -> None:
        settings, agents = around.settings, around.agents
        self.quiet, self.tools = around.quiet, MemoryTools(around.toolbox)
        thinking = Thinking(agents)
        self.keeper = Keeper(around.database, self.tools, around.ready, settings.user_name, around.quiet)
        self.learn = LearnFacts(
            LearnServices(around.durable, self.tools, thinking, around.traces, settings, around.ready)
        )
        self.tidying = Tidying(self.tools, thinking)
        self._agents = agents
        learning = settings.fact_extraction_enabled and settings.thinker_enabled
        self.rest_seconds = settings.fact_extraction_idle_seconds if learning else None
        self._resting = Resting(around.database, agents, settings.fact_extraction_idle_seconds, self._rested)
        self._warm = settings.thinker_warm_spare and settings.thinker_enabled
        self._opening: asyncio.Task[None] | None = None

    def native_tools(self) -> list[NativeTool]:
        return [backfill_tool(self.learn, self._agents), synthesize_tool(self.tidying, self._agents)]

    async def start(self) -> None:
        """Go on with what the last process left."""
        self.keeper.start()
        if self.rest_seconds is not None:
            await self._resting.start()
        if self._warm:
            self._opening = asyncio.create_task(self._open())

    async def _open(self) -> None:
        """Let the memory open its database now, like the spare thinker: the first message would wait for it."""
        await asyncio.sleep(_OPEN_AFTER_SECONDS)
        with contextlib.suppress(AnnabelleError):  # whoever needs it next is told
            await self.tools.known(Owned(OWNER, self._agents.config.default.agent_id), 1)

    def delivered(self, message: StoredMessage) -> None:
        """A turn is over: it has to be stored, and its thread rests."""
        self.keeper.wake()
        if self.rest_seconds is not None:
            self._resting.said(message.thread_id)

    async def stop(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        await self._resting.stop()
        await self.keeper.stop()

    async def _rested(self, idle: IdleThread) -> None:
        await self.learn.begin(of_thread(idle.thread_id, idle.user_id, idle.agent_id, idle.last_message_id))
