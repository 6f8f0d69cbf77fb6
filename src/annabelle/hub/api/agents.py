"""Agents: list, pause, resume, restart and stop them (TRU-06)."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime
from pathlib import Path as FilePath
from typing import Annotated, Final, Literal

from fastapi import Path, Query, Request
from pydantic import Field
from sqlalchemy import Connection

from annabelle.core.errors import StorageTrouble, explain_os_error
from annabelle.core.home import write_atomically
from annabelle.core.messages import MessageSource, MessageState, now
from annabelle.core.persona import MOST_PERSONA_CHARS, PERSONA_FILE, default_persona, read_own_persona
from annabelle.hub.agents.halts import ALL, RESUME
from annabelle.hub.agents.manager import AgentStatus
from annabelle.hub.agents.stopper import describe_resume, describe_stop
from annabelle.hub.api.endpoint import ID_SHAPE, ApiAnswer, ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.context import HubContext
from annabelle.hub.costs.monitor import background_account
from annabelle.store import ledger
from annabelle.store.claims import HeldClaim, find_claim, list_agent_claims
from annabelle.store.message_state import load_root_message
from annabelle.store.messages import StoredMessage, list_agent_turns, load_message

router = ApiRouter("agents")
_SHOWN_CHARS: Final = 80
AgentId = Annotated[str, Path(pattern=ID_SHAPE, examples=["annabelle"])]


class AgentList(ApiAnswer):
    agents: list[AgentStatus]


class PauseAgent(ApiBody):
    """Why the agent is paused; whoever writes to it is told."""

    reason: str = Field(default="paused by its owner", min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")


class ResumeAgent(ApiBody):
    """How the agent goes on."""

    reset_window: bool = Field(default=False, description="Forget what was spent in the current window")


@router.get("/agents", **document("All agents"))
async def list_agents(hub: TheHub) -> AgentList:
    """A stopped agent is available: its next message starts it."""
    return AgentList(agents=hub.agents.statuses())


class AgentTurn(ApiAnswer):
    """One message to the agent, and where its turn stands."""

    message_id: str
    thread_id: str
    channel: str
    source: MessageSource
    state: MessageState
    text: str = Field(description="How it begins")
    created_at: datetime


class AgentHalt(ApiAnswer):
    """The owner's stop that holds for the agent."""

    at: datetime
    by: str
    everything: bool = Field(description="Whether all agents are stopped, and not this one alone")


class ExecutionLock(ApiAnswer):
    """The turn that has a thread to itself; whatever else comes in there waits for it."""

    thread_id: str
    message_id: str
    owner: str = Field(description="Who holds it: the hub, or its work in the background")
    since: datetime
    type: str | None = Field(description="What runs by itself: agent_check_in or feed_generation")


def load_lock(conn: Connection, thread_id: str) -> ExecutionLock | None:
    claim = find_claim(conn, thread_id)
    return None if claim is None else _to_lock(conn, claim)


def _to_lock(conn: Connection, claim: HeldClaim) -> ExecutionLock:
    root = load_root_message(conn, load_message(conn, claim.message_id))
    return ExecutionLock.from_row(claim, since=claim.claimed_at, type=root.metadata.get("type"))


class AgentView(ApiAnswer):
    """One agent: how it is doing, what it did and what it spent."""

    agent: AgentStatus
    halt: AgentHalt | None
    background_pause: str | None = Field(description="Why its work in the background is paused, if it is")
    cost_today_usd: float
    calls_today: int
    running: list[ExecutionLock] = Field(description="The turns it has under way")
    turns: list[AgentTurn] = Field(description="The newest first")


@router.get("/agents/{agent_id}", **document("One agent", 404))
async def show_agent(
    agent_id: AgentId,
    hub: TheHub,
    last: Annotated[int, Query(ge=1, le=200, description="How many of its newest turns")] = 10,
) -> AgentView:
    """Its state, what holds it back, what it spent today (UTC), and its newest turns."""
    hub.agents.registry.agent(agent_id)
    halts = hub.agents.halts
    halt = halts.find(agent_id)
    account = background_account(agent_id)
    paused = next((one.reason for one in hub.agents.paused_accounts() if one.agent_id == account), None)
    midnight = now().replace(hour=0, minute=0, second=0, microsecond=0)

    def read(conn: Connection) -> tuple[list[StoredMessage], list[ExecutionLock], tuple[int, float]]:
        locks = [_to_lock(conn, claim) for claim in list_agent_claims(conn, agent_id)]
        return list_agent_turns(conn, agent_id, last), locks, ledger.sum_agent_costs(conn, agent_id, midnight)

    turns, locks, (calls, cost) = await hub.storage.database.read(read)
    return AgentView(
        agent=hub.agents.status(agent_id),
        halt=None if halt is None else AgentHalt(at=halt.at, by=halt.by, everything=halts.everything is not None),
        background_pause=paused,
        cost_today_usd=cost,
        calls_today=calls,
        running=locks,
        turns=[
            AgentTurn.from_row(one, message_id=one.id, text=" ".join(one.content.split())[:_SHOWN_CHARS])
            for one in turns
        ],
    )


@router.post("/agents/{agent_id}/pause", **document("Pause an agent", 404, body=PauseAgent))
async def pause_agent(agent_id: AgentId, request: Request, hub: TheHub) -> AgentStatus:
    """From now on it answers at once with the reason, and processes nothing."""
    return await hub.agents.pause(agent_id, (await read_body(request, PauseAgent)).reason)


@router.post("/agents/{agent_id}/resume", **document("Let an agent go on", 404, body=ResumeAgent))
async def resume_agent(agent_id: AgentId, request: Request, hub: TheHub) -> AgentStatus:
    """Only this ends a pause."""
    return await hub.agents.resume(agent_id, (await read_body(request, ResumeAgent)).reset_window)


@router.post("/agents/{agent_id}/restart", **document("Start an agent's process again", 404))
async def restart_agent(agent_id: AgentId, hub: TheHub) -> AgentStatus:
    """Turns in flight go on in the new process. An agent that does not run stays stopped until its next message."""
    return await hub.agents.restart(agent_id)


class PersonaTexts(ApiAnswer):
    """Where the persona of an agent may stand. The first that is not empty is in force, with the persona of the profile
    between the file and the default."""

    setting: str = Field(description="systemPrompt in agents.json")
    file: str = Field(description="Its instructions.md; empty while nobody has changed it")
    default: str


class PersonaChange(ApiBody):
    """A new text for the file."""

    text: str = Field(max_length=MOST_PERSONA_CHARS, description="Empty for the default")


@router.get("/agents/{agent_id}/persona", **document("Who an agent is", 404))
async def show_persona(agent_id: AgentId, hub: TheHub) -> PersonaTexts:
    return await _read_persona(hub, agent_id)


@router.post("/agents/{agent_id}/persona", **document("Say who an agent is", 404, body=PersonaChange))
async def change_persona(agent_id: AgentId, request: Request, hub: TheHub) -> PersonaTexts:
    """Writes its instructions.md, which counts from the next message on."""
    asked, file = await read_body(request, PersonaChange), _persona_file(hub, agent_id)
    text = f"{asked.text.strip()}\n" if asked.text.strip() else default_persona(agent_id)
    with explain_os_error(StorageTrouble, f"{file} cannot be written"):
        await asyncio.to_thread(write_atomically, file, text)
    return await _read_persona(hub, agent_id)


async def _read_persona(hub: HubContext, agent_id: str) -> PersonaTexts:
    file, own = _persona_file(hub, agent_id), ""
    with explain_os_error(StorageTrouble, f"{file} cannot be read"), contextlib.suppress(FileNotFoundError):
        own = await asyncio.to_thread(read_own_persona, file, agent_id)
    setting = hub.agents.registry.agent(agent_id).system_prompt.strip()
    return PersonaTexts(setting=setting, file=own, default=default_persona(agent_id))


def _persona_file(hub: HubContext, agent_id: str) -> FilePath:
    return hub.base.home.agent(hub.agents.registry.agent(agent_id).agent_id) / PERSONA_FILE


class StopTarget(ApiBody):
    """What is meant: one agent by its id, a part (thinker, scheduler, a channel), or everything."""

    target: str = Field(default=ALL, pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$", examples=["all", "annabelle", "scheduler"])


class Halted(ApiAnswer):
    """What is stopped now."""

    all: bool
    agents: list[str]
    parts: list[str] = Field(description="thinker (all agents), scheduler, channels")


class StopAnswer(ApiAnswer):
    success: Literal[True] = True
    message: str = Field(description="What came of it, for a person")
    turns: int = Field(default=0, description="How many turns were ended")
    halted: Halted


@router.post("/stop", **document("Stop an agent, or all of them", 404, body=StopTarget))
@router.post("/kill", operation_id="kill", **document("The same as /stop", 404, body=StopTarget))
async def stop(request: Request, hub: TheHub, caller: Caller) -> StopAnswer:
    """Turns end within a second, also when an agent or a server hangs; its processes are killed. Questions that waited
    for an answer are taken back. It stays stopped over restarts until it is resumed."""
    target = (await read_body(request, StopTarget)).target
    turns = await hub.conversations.stopper.stop(target, caller.user_id)
    resume = RESUME if target == ALL else f"{RESUME} {target}"
    message = f"{describe_stop(target, turns)} It stays so until: {resume}"
    return StopAnswer(message=message, turns=turns, halted=_halted(hub))


@router.post("/resume", **document("Let an agent, or all of them, go on", 404, 409, body=StopTarget))
async def resume(request: Request, hub: TheHub, caller: Caller) -> StopAnswer:
    """Turns that were ended stay so; the next message is answered again. A pause for costs is not ended by this."""
    target = (await read_body(request, StopTarget)).target
    was = await hub.conversations.stopper.resume(target, caller.user_id)
    return StopAnswer(message=describe_resume(target, was=was), halted=_halted(hub))


def _halted(hub: HubContext) -> Halted:
    halts = hub.conversations.stopper.halts
    parts = [name for name in halts.stopped if name in halts.parts]
    return Halted(all=halts.everything is not None, agents=list(halts.agents), parts=parts)
