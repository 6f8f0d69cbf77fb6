"""`GET /health`: whether the hub is alive. The only address that needs no token."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter

from annabelle import __version__
from annabelle.hub.api.documented import Answer, TheHub, failures
from annabelle.hub.status import Phase

router = APIRouter(tags=["hub"])


class Health(Answer):
    status: Literal["ok"] = "ok"
    phase: Phase
    version: str


@router.get("/health", operation_id="health", responses=failures(), summary="Is the hub alive?")
async def health(hub: TheHub) -> Health:
    """Answers as soon as the hub listens; `phase` is `ready` once every server has started."""
    return Health(phase=hub.progress.phase, version=__version__)
