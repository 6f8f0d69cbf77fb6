"""The components of a running hub for request handlers, and its status."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime

from pydantic import Field

from annabelle import __version__
from annabelle.core.models import CamelModel
from annabelle.core.ports import AuditTrail
from annabelle.durable.thread_queue import ThreadQueue
from annabelle.hub.agents.manager import AgentManager, AgentStatus
from annabelle.hub.agents.stopper import Stopper
from annabelle.hub.approvals.approval_answer import ApprovalService
from annabelle.hub.base import HubBase, HubStorage, Phase
from annabelle.hub.conversations.event_log import EventFanout
from annabelle.hub.conversations.message_gate import MessageGate
from annabelle.hub.conversations.turns import ActiveTurns, ReplyWaiters
from annabelle.hub.costs.ledger import CostLedger
from annabelle.hub.diagnosis.diagnosis import Diagnosis
from annabelle.hub.memory.service import HubMemory
from annabelle.hub.notices import HubNotice
from annabelle.hub.security.audit import LoginAudit
from annabelle.hub.security.identities import HomeUsers, Identities
from annabelle.hub.security.tool_access import ToolAccess
from annabelle.hub.skills.skill_service import SkillService
from annabelle.hub.tasks.task_runner import TaskRunner
from annabelle.hub.trust.rules import StandingRules
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.status import ServerStatus


class HubStatus(CamelModel):
    """The hub at this moment."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSecurity:
    identities: Identities
    users: HomeUsers
    logins: LoginAudit
    audit: AuditTrail


@dataclass(frozen=True, slots=True, kw_only=True)
class HubConversations:
    """Everything a message passes: the gate, the queue, its turn and its listeners."""

    gate: MessageGate
    thread_queue: ThreadQueue
    turns: ActiveTurns
    reply_waiters: ReplyWaiters
    fanout: EventFanout
    stopper: Stopper


@dataclass(frozen=True, slots=True, kw_only=True)
class HubServices:
    approvals: ApprovalService
    rules: StandingRules
    skills: SkillService
    tasks: TaskRunner
    memory: HubMemory
    ledger: CostLedger
    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True, kw_only=True)
class HubContext:
    base: HubBase
    storage: HubStorage
    security: HubSecurity
    conversations: HubConversations
    agents: AgentManager
    toolbox: Toolbox
    services: HubServices

    @property
    def tool_access(self) -> ToolAccess:
        return ToolAccess(
            registry=self.agents.registry,
            users=self.security.users,
            turns=self.conversations.turns,
            toolbox=self.toolbox,
        )

    def status(self) -> HubStatus:
        tools = self.toolbox.tools()
        return HubStatus(
            version=__version__,
            status=self.base.lifecycle.phase,
            address=self.base.address,
            pid=os.getpid(),
            started_at=self.base.lifecycle.started_at,
            uptime_seconds=round(self.base.lifecycle.uptime_seconds, 3),
            thinker_enabled=self.base.settings.thinker_enabled,
            tool_count=len(tools.tools),
            tools_version=tools.version,
            turns_running=self.conversations.turns.running,
            warm_spare=self.agents.spare_ready,
            servers=self.toolbox.servers(),
            agents=[*self.agents.statuses(), *self.services.tasks.subagents.statuses()],
            notices=self.base.notices.all(),
        )
