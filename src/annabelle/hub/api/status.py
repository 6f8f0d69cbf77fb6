"""`/status` and `/health`. Only `/health` needs no token."""

from __future__ import annotations

from typing import Literal

from annabelle import __version__
from annabelle.hub.api.endpoint import ApiAnswer, ApiRouter, TheHub, document
from annabelle.hub.base import Phase
from annabelle.hub.status import HubStatus

router = ApiRouter("hub")


@router.get("/status", **document("How is everything doing?"))
async def status(hub: TheHub) -> HubStatus:
    """Servers, agents, tools, turns and notices at this moment."""
    return hub.status()


class HubHealth(ApiAnswer):
    status: Literal["ok"] = "ok"
    phase: Phase
    version: str


@router.get("/health", **document("Is the hub alive?"))
async def health(hub: TheHub) -> HubHealth:
    """Answers as soon as the hub listens; `phase` is `ready` once every server has started."""
    return HubHealth(phase=hub.base.lifecycle.phase, version=__version__)
