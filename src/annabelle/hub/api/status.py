"""`/status` and `/health`. Only `/health` needs no token."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter

from annabelle import __version__
from annabelle.hub.api.endpoint import ApiAnswer, TheHub, error_responses
from annabelle.hub.base import Phase
from annabelle.hub.context import HubStatus

router = APIRouter(tags=["hub"])


@router.get("/status", operation_id="status", responses=error_responses(), summary="How is everything doing?")
async def status(hub: TheHub) -> HubStatus:
    """Servers, agents, tools, turns and notices at this moment."""
    return hub.status()


class HubHealth(ApiAnswer):
    status: Literal["ok"] = "ok"
    phase: Phase
    version: str


@router.get("/health", operation_id="health", responses=error_responses(), summary="Is the hub alive?")
async def health(hub: TheHub) -> HubHealth:
    """Answers as soon as the hub listens; `phase` is `ready` once every server has started."""
    return HubHealth(phase=hub.base.lifecycle.phase, version=__version__)
