"""Agents: see them, pause and resume them, start them again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from annabelle.hub.agents.manager import AgentStatus
from annabelle.hub.api.documented import ID_SHAPE, Answer, TheHub, body_of, failures, read_body

router = APIRouter(tags=["agents"])
AgentId = Annotated[str, Path(pattern=ID_SHAPE, examples=["annabelle"])]


class AgentList(Answer):
    agents: list[AgentStatus]


class Pause(BaseModel):
    """Why the agent is paused; whoever writes to it is told."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(default="paused by its owner", min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")


class Resume(BaseModel):
    """How the agent goes on."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)

    reset_window: bool = Field(default=False, description="Forget what was spent in the current window")


@router.get("/agents", operation_id="list_agents", responses=failures(), summary="All agents")
async def list_agents(hub: TheHub) -> AgentList:
    """A stopped agent is available: its next message starts it."""
    return AgentList(agents=hub.agents.statuses())


@router.post(
    "/agents/{agent_id}/pause",
    operation_id="pause_agent",
    responses=failures(404),
    openapi_extra=body_of(Pause, required=False),
    summary="Pause an agent",
)
async def pause_agent(agent_id: AgentId, request: Request, hub: TheHub) -> AgentStatus:
    """From now on it answers at once with the reason, and processes nothing."""
    return await hub.agents.pause(agent_id, (await read_body(request, Pause)).reason)


@router.post(
    "/agents/{agent_id}/resume",
    operation_id="resume_agent",
    responses=failures(404),
    openapi_extra=body_of(Resume, required=False),
    summary="Let an agent go on",
)
async def resume_agent(agent_id: AgentId, request: Request, hub: TheHub) -> AgentStatus:
    """Only this ends a pause."""
    return await hub.agents.resume(agent_id, (await read_body(request, Resume)).reset_window)


@router.post(
    "/agents/{agent_id}/restart",
    operation_id="restart_agent",
    responses=failures(404),
    summary="Start an agent's process again",
)
async def restart_agent(agent_id: AgentId, hub: TheHub) -> AgentStatus:
    """Turns in flight go on in the new process. An agent that does not run stays stopped until its next message."""
    return await hub.agents.restart(agent_id)
