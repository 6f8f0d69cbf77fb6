"""`/status`, `/health` and `/restart`. Only `/health` needs no token."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Literal

from fastapi import Response

from annabelle import __version__
from annabelle.core.errors import ConfigMistake, Conflict
from annabelle.core.settings import load_settings
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
    started_at: datetime


@router.get("/health", **document("Is the hub alive?"))
async def health(hub: TheHub) -> HubHealth:
    """Answers as soon as the hub listens; `phase` is `ready` once every server has started."""
    lifecycle = hub.base.lifecycle
    return HubHealth(phase=lifecycle.phase, version=__version__, started_at=lifecycle.started_at)


@router.post("/restart", status_code=202, response_class=Response, **document("Stop and start again", 409))
async def restart(hub: TheHub) -> Response:
    """With the settings of now, which are checked first. Running turns are waited for, and go on afterwards."""
    try:
        await asyncio.to_thread(load_settings, hub.base.home)
    except ConfigMistake as mistake:
        raise Conflict(mistake.message, hint=mistake.hint, field=mistake.field) from mistake
    hub.base.lifecycle.restart()
    return Response(status_code=202)
