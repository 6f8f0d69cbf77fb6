"""The parts of a running hub, as requests and flows reach them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from dataclasses import dataclass, field
from datetime import datetime

from annabelle import __version__
from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.core.ports import Audit
from annabelle.core.settings import Settings
from annabelle.core.trace import TraceFile
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.approvals.approvals import Approvals
from annabelle.hub.audit.logins import Logins
from annabelle.hub.events.fanout import Fanout
from annabelle.hub.events.log import EventLog
from annabelle.hub.finished import Finished
from annabelle.hub.forgetting.forgetting import Forgetting
from annabelle.hub.gate import Gate
from annabelle.hub.ledger import StoredLedger
from annabelle.hub.memory.service import HubMemory
from annabelle.hub.notices import Notices
from annabelle.hub.rules.rules import Rules
from annabelle.hub.security.identities import Identities
from annabelle.hub.security.people import People
from annabelle.hub.status import HubStatus, Phase
from annabelle.hub.stopping.stopper import Stopper
from annabelle.hub.subagents.tasks import Tasks
from annabelle.hub.turns import Turns
from annabelle.store.database import Database
from annabelle.toolbox.facade import Toolbox

_READY_SECONDS = 60.0


@dataclass(slots=True)
class Progress:
    """How far the hub has come in its life."""

    started_at: datetime = field(default_factory=now)
    _began: float = field(default_factory=time.monotonic)
    _ready: asyncio.Event = field(default_factory=asyncio.Event)
    phase: Phase = "starting"

    def ready(self) -> None:
        self.phase = "ready"
        self._ready.set()

    async def wait_ready(self, timeout: float = _READY_SECONDS) -> None:
        """Wait until every server has listed its tools or failed to; go on anyway after the time."""
        if not self._ready.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ready.wait(), timeout)

    @property
    def uptime_seconds(self) -> float:
        return time.monotonic() - self._began


@dataclass(frozen=True, slots=True)
class Hub:
    """Everything a request may need."""

    home: Home
    settings: Settings
    address: str
    progress: Progress
    notices: Notices
    identities: Identities
    traces: TraceFile
    database: Database
    toolbox: Toolbox
    agents: AgentManager
    fanout: Fanout
    events: EventLog
    turns: Turns
    finished: Finished
    ledger: StoredLedger
    gate: Gate
    memory: HubMemory
    people: People
    forgetting: Forgetting
    audit: Audit
    logins: Logins
    stopper: Stopper
    tasks: Tasks
    approvals: Approvals
    rules: Rules

    def status(self) -> HubStatus:
        tools = self.toolbox.tools()
        return HubStatus(
            version=__version__,
            status=self.progress.phase,
            address=self.address,
            pid=os.getpid(),
            started_at=self.progress.started_at,
            uptime_seconds=round(self.progress.uptime_seconds, 3),
            thinker_enabled=self.settings.thinker_enabled,
            tool_count=len(tools.tools),
            tools_version=tools.version,
            turns_running=self.turns.running,
            warm_spare=self.agents.spare_ready,
            servers=self.toolbox.servers(),
            agents=[*self.agents.statuses(), *self.tasks.subagents.statuses()],
            notices=self.notices.all(),
        )
