"""How the whole hub is doing, as `/status`, the terminal and the model see it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from annabelle.hub.agents.manager import AgentStatus
from annabelle.hub.notices import Notice
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
    notices: list[Notice]
