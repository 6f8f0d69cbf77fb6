"""How the hub and everything it runs are doing at this moment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime

from pydantic import Field

from annabelle import __version__
from annabelle.core.models import CamelModel
from annabelle.hub.agents.manager import AgentManager, AgentStatus
from annabelle.hub.base import HubBase, Phase
from annabelle.hub.conversations.turns import ActiveTurns
from annabelle.hub.notices import HubNotice
from annabelle.hub.tasks.subagents import Subagents
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
class StatusReader:
    base: HubBase
    toolbox: Toolbox
    agents: AgentManager
    turns: ActiveTurns
    subagents: Subagents

    def read(self) -> HubStatus:
        tools, lifecycle = self.toolbox.tools(), self.base.lifecycle
        return HubStatus(
            version=__version__,
            status=lifecycle.phase,
            address=self.base.address,
            pid=os.getpid(),
            started_at=lifecycle.started_at,
            uptime_seconds=round(lifecycle.uptime_seconds, 3),
            thinker_enabled=self.base.settings.thinker_enabled,
            tool_count=len(tools.tools),
            tools_version=tools.version,
            turns_running=self.turns.running,
            warm_spare=self.agents.spare_ready,
            servers=self.toolbox.servers(),
            agents=[*self.agents.statuses(), *self.subagents.statuses()],
            notices=self.base.notices.all(),
        )
