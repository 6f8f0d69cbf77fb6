"""Servers: see them, and start one again, as `annabelle connect` does when an account has changed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from annabelle.hub.api.documented import ID_SHAPE, Answer, TheHub, failures
from annabelle.toolbox.status import ServerStatus

router = APIRouter(tags=["servers"])
ServerName = Annotated[str, Path(pattern=ID_SHAPE, examples=["telegram"])]


class ServerList(Answer):
    servers: list[ServerStatus]


@router.get("/servers", operation_id="list_servers", responses=failures(), summary="All servers")
async def list_servers(hub: TheHub) -> ServerList:
    """How each server is doing, and what one lacks to do its work."""
    return ServerList(servers=hub.toolbox.servers())


@router.post(
    "/servers/{name}/restart",
    operation_id="restart_server",
    responses=failures(404),
    summary="Start a server again",
)
async def restart_server(name: ServerName, hub: TheHub) -> ServerStatus:
    """Answers when it is back. Calls that wait for it go on then; one it was working on may be lost."""
    await hub.progress.wait_ready()
    return await hub.toolbox.restart(name)
