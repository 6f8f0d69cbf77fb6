"""`POST /stop` and `POST /resume`: end what an agent does, and keep it from doing more (TRU-06)."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from annabelle.hub.api.documented import Answer, Caller, TheHub, body_of, failures, read_body
from annabelle.hub.services import Hub
from annabelle.hub.stopping.halts import ALL, RESUME

router = APIRouter(tags=["agents"])


class Target(BaseModel):
    """What is meant: one agent by its id, or all of them."""

    model_config = ConfigDict(extra="forbid")

    target: str = Field(default=ALL, pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$", examples=["all", "annabelle"])


class Halted(Answer):
    """What is stopped now."""

    all: bool
    agents: list[str]


class StopAnswer(Answer):
    success: Literal[True] = True
    message: str = Field(description="What came of it, for a person")
    turns: int = Field(default=0, description="How many turns were ended")
    halted: Halted


@router.post(
    "/stop",
    operation_id="stop",
    responses=failures(404),
    openapi_extra=body_of(Target, required=False),
    summary="Stop an agent, or all of them",
)
@router.post(
    "/kill",
    operation_id="kill",
    responses=failures(404),
    openapi_extra=body_of(Target, required=False),
    summary="The same as /stop",
)
async def stop(request: Request, hub: TheHub, caller: Caller) -> StopAnswer:
    """Turns end within a second, also when an agent or a server hangs; its processes are killed. Questions that waited
    for an answer are taken back. It stays stopped over restarts until it is resumed."""
    target = (await read_body(request, Target)).target
    turns = await hub.stopper.stop(target, caller.user_id)
    what = "Everything is stopped" if target == ALL else f"{target} is stopped"
    ended = f"; {turns} {'turn was' if turns == 1 else 'turns were'} ended" if turns else ""
    resume = RESUME if target == ALL else f"{RESUME} {target}"
    return StopAnswer(message=f"{what}{ended}. It stays so until: {resume}", turns=turns, halted=_halted(hub))


@router.post(
    "/resume",
    operation_id="resume",
    responses=failures(404, 409),
    openapi_extra=body_of(Target, required=False),
    summary="Let an agent, or all of them, go on",
)
async def resume(request: Request, hub: TheHub, caller: Caller) -> StopAnswer:
    """Turns that were ended stay so; the next message is answered again. A pause for costs is not ended by this."""
    target = (await read_body(request, Target)).target
    was = await hub.stopper.resume(target, caller.user_id)
    what = "Everything goes on" if target == ALL else f"{target} goes on"
    return StopAnswer(message=f"{what}." if was else "Nothing was stopped.", halted=_halted(hub))


def _halted(hub: Hub) -> Halted:
    halts = hub.stopper.halts
    return Halted(all=halts.everything is not None, agents=list(halts.agents))
