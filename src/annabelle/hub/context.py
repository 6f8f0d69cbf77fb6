"""The components of a running hub for request handlers."""

from __future__ import annotations

from dataclasses import dataclass, field

from annabelle.core.ports import AuditTrail
from annabelle.durable.thread_queue import ThreadQueue
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.agents.stopper import Stopper
from annabelle.hub.base import HubBase, HubStorage
from annabelle.hub.channels.service import HubChannels
from annabelle.hub.conversations.event_log import EventFanout
from annabelle.hub.conversations.message_gate import MessageGate
from annabelle.hub.conversations.turns import ActiveTurns, ReplyWaiters
from annabelle.hub.security.audit import LoginAudit
from annabelle.hub.security.identities import HomeUsers, Identities
from annabelle.hub.security.page_links import PageLinks
from annabelle.hub.security.tool_access import ToolAccess
from annabelle.hub.services import HubServices
from annabelle.hub.status import HubStatus, StatusReader
from annabelle.toolbox.facade import Toolbox


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSecurity:
    identities: Identities
    users: HomeUsers
    logins: LoginAudit
    audit: AuditTrail
    page_links: PageLinks = field(default_factory=PageLinks)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubConversations:
    """Everything a message passes: the gate, the queue, its turn and its listeners."""

    gate: MessageGate
    thread_queue: ThreadQueue
    turns: ActiveTurns
    reply_waiters: ReplyWaiters
    fanout: EventFanout
    stopper: Stopper
    channels: HubChannels


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
            conversations_outside=not self.base.settings.thinker_enabled,
        )

    def status(self) -> HubStatus:
        return StatusReader(
            base=self.base,
            toolbox=self.toolbox,
            agents=self.agents,
            turns=self.conversations.turns,
            subagents=self.services.tasks.subagents,
        ).read()
