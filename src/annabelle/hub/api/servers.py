"""Servers: list, restart, accept and reject them (EXT-06)."""

from __future__ import annotations

from typing import Annotated, get_args

from fastapi import Path, Request
from pydantic import Field

from annabelle.hub.api.endpoint import ID_SHAPE, ApiAnswer, ApiBody, ApiRouter, TheHub, document, read_body
from annabelle.hub.context import HubContext
from annabelle.toolbox.status import HoldState, ServerStatus

router = ApiRouter("servers")
ServerName = Annotated[str, Path(pattern=ID_SHAPE, examples=["telegram"])]


class ServerList(ApiAnswer):
    servers: list[ServerStatus]


class Accept(ApiBody):
    """A yes; with `digest` only to exactly what was looked at."""

    digest: str | None = Field(default=None, max_length=100)


class ServerAccount(ApiAnswer):
    """An external server as its owner should see it before a yes. Signs that can not be seen are spelled out."""

    name: str
    held: HoldState | None = Field(description="Why it does not run; null when it does")
    why: str | None
    digest: str | None = Field(description="Names what a yes accepts")
    entry: list[str] = Field(description="What the file of servers says")
    server: list[str] = Field(description="What the server says of itself: tools, prompts, resources")
    diff: str = Field(description="From what was accepted to what is there, as a unified diff")


@router.get("/servers", **document("All servers"))
async def list_servers(hub: TheHub) -> ServerList:
    """How each server is doing, and what one lacks to do its work."""
    return ServerList(servers=hub.toolbox.servers())


@router.post("/servers/{name}/restart", **document("Start a server again", 404))
async def restart_server(name: ServerName, hub: TheHub) -> ServerStatus:
    """Answers when it is back. Calls that wait for it go on then; one it was working on may be lost."""
    await hub.base.lifecycle.wait_ready()
    return await hub.toolbox.restart(name)


@router.get("/servers/{name}", **document("An external server, and what changed in it", 404))
async def show_server(name: ServerName, hub: TheHub) -> ServerAccount:
    """What it is, what holds it back, and what changed since it was accepted."""
    await hub.base.lifecycle.wait_ready()
    review = hub.toolbox.admission.review(name)
    hold = review.hold
    return ServerAccount.from_row(
        review, held=hold and hold.state, why=hold and hold.sentence, digest=hold and hold.digest
    )


@router.post("/servers/{name}/accept", **document("Say yes to an external server", 404, 409, body=Accept))
async def accept_server(name: ServerName, hub: TheHub, request: Request) -> ServerStatus:
    """It starts at once. When what it says of itself is not what was accepted before, it is held back again."""
    wanted = await read_body(request, Accept)
    await hub.base.lifecycle.wait_ready()
    await hub.toolbox.admission.accept(name, wanted.digest)
    status = _status(hub, name)
    if status.state not in get_args(HoldState):
        hub.base.notices.clear(f"server_held:{name}")
    return status


@router.post("/servers/{name}/reject", **document("Say no to an external server", 404))
async def reject_server(name: ServerName, hub: TheHub) -> ServerStatus:
    """It stops, and does not start again before a yes."""
    await hub.base.lifecycle.wait_ready()
    await hub.toolbox.admission.reject(name)
    hub.base.notices.clear(f"server_held:{name}")
    return _status(hub, name)


def _status(hub: HubContext, name: str) -> ServerStatus:
    return next(status for status in hub.toolbox.servers() if status.name == name)
