"""The components of a running hub, as requests reach them, and its status."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from annabelle import __version__
from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.core.ports import AuditTrail
from annabelle.core.settings import Settings
from annabelle.core.trace import TraceFile
from annabelle.hub.agents.manager import AgentManager, AgentStatus
from annabelle.hub.agents.stopper import Stopper
from annabelle.hub.approvals.approval_answer import ApprovalService
from annabelle.hub.conversations.event_log import EventFanout, EventLog
from annabelle.hub.conversations.message_gate import MessageGate
from annabelle.hub.conversations.turns import ActiveTurns, ReplyWaiters
from annabelle.hub.costs.ledger import CostLedger
from annabelle.hub.forgetting.forget_service import ForgetService
from annabelle.hub.memory.service import HubMemory
from annabelle.hub.notices import HubNotice, Notices
from annabelle.hub.security.audit import LoginAudit
from annabelle.hub.security.identities import HomeUsers, Identities
from annabelle.hub.tasks.task_runner import TaskRunner
from annabelle.hub.trust.rules import StandingRules
from annabelle.store.database import Database
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.status import ServerStatus

Phase = Literal["starting", "ready", "stopping"]


class HubStatus(BaseModel):
    """The hub at this moment."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    version: str
    status: Phase
    address: str
    pid: int
    started_at: datetime
    uptime_seconds: float
    thinker_enabled: bool
    tool_count: int
    tools_version: str = Field(description="Changes whenever the list of tools does")
    turns_running: int
    warm_spare: bool = Field(description="Whether a prepared agent process waits for the next agent")
    servers: list[ServerStatus]
    agents: list[AgentStatus]
    notices: list[HubNotice]


_READY_SECONDS = 60.0


@dataclass(slots=True)
class HubLifecycle:
    """How far the hub has come in its life."""

    started_at: datetime = field(default_factory=now)
    _began: float = field(default_factory=time.monotonic)
    _ready: asyncio.Event = field(default_factory=asyncio.Event)
    phase: Phase = "starting"

    def mark_ready(self) -> None:
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
class HubContext:
    """Everything a request may need."""

    home: Home
    settings: Settings
    address: str
    lifecycle: HubLifecycle
    notices: Notices
    identities: Identities
    traces: TraceFile
    database: Database
    toolbox: Toolbox
    agents: AgentManager
    fanout: EventFanout
    events: EventLog
    turns: ActiveTurns
    reply_waiters: ReplyWaiters
    ledger: CostLedger
    gate: MessageGate
    memory: HubMemory
    people: HomeUsers
    forgetting: ForgetService
    audit: AuditTrail
    logins: LoginAudit
    stopper: Stopper
    tasks: TaskRunner
    approvals: ApprovalService
    rules: StandingRules

    def status(self) -> HubStatus:
        tools = self.toolbox.tools()
        return HubStatus(
            version=__version__,
            status=self.lifecycle.phase,
            address=self.address,
            pid=os.getpid(),
            started_at=self.lifecycle.started_at,
            uptime_seconds=round(self.lifecycle.uptime_seconds, 3),
            thinker_enabled=self.settings.thinker_enabled,
            tool_count=len(tools.tools),
            tools_version=tools.version,
            turns_running=self.turns.running,
            warm_spare=self.agents.spare_ready,
            servers=self.toolbox.servers(),
            agents=[*self.agents.statuses(), *self.tasks.subagents.statuses()],
            notices=self.notices.all(),
        )
