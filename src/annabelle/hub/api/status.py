"""`GET /status`: how everything is doing."""

from __future__ import annotations

from fastapi import APIRouter

from annabelle.hub.api.documented import TheHub, failures
from annabelle.hub.status import HubStatus

router = APIRouter(tags=["hub"])


@router.get("/status", operation_id="status", responses=failures(), summary="How is everything doing?")
async def status(hub: TheHub) -> HubStatus:
    """Servers, agents, tools, turns and notices at this moment."""
    return hub.status()
