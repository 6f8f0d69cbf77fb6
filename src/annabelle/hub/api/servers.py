"""Servers: list, restart, accept and reject them (EXT-06)."""

from __future__ import annotations

from typing import Annotated, get_args

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from annabelle.hub.api.endpoint import ID_SHAPE, ApiAnswer, TheHub, document_body, error_responses, read_body
from annabelle.hub.context import HubContext
from annabelle.toolbox.external.pins import ServerReview
from annabelle.toolbox.status import HoldState, ServerStatus

router = APIRouter(tags=["servers"])
ServerName = Annotated[str, Path(pattern=ID_SHAPE, examples=["telegram"])]


class ServerList(ApiAnswer):
    servers: list[ServerStatus]


class Accept(BaseModel):
    """A yes; with `digest` only to exactly what was looked at."""

    model_config = ConfigDict(extra="forbid")

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

    @classmethod
    def from_account(cls, account: ServerReview) -> ServerAccount:
        hold = account.hold
        return cls(
            name=account.name,
            held=None if hold is None else hold.state,
            why=None if hold is None else hold.sentence,
            digest=None if hold is None else hold.digest,
            entry=list(account.entry),
            server=list(account.server),
            diff=account.diff,
        )


@router.get("/servers", operation_id="list_servers", responses=error_responses(), summary="All servers")
async def list_servers(hub: TheHub) -> ServerList:
    """How each server is doing, and what one lacks to do its work."""
    return ServerList(servers=hub.toolbox.servers())


@router.post(
    "/servers/{name}/restart",
    operation_id="restart_server",
    responses=error_responses(404),
    summary="Start a server again",
)
async def restart_server(name: ServerName, hub: TheHub) -> ServerStatus:
    """Answers when it is back. Calls that wait for it go on then; one it was working on may be lost."""
    await hub.base.lifecycle.wait_ready()
    return await hub.toolbox.restart(name)


@router.get(
    "/servers/{name}",
    operation_id="show_server",
    responses=error_responses(404),
    summary="An external server, and what changed in it",
)
async def show_server(name: ServerName, hub: TheHub) -> ServerAccount:
    """What it is, what holds it back, and what changed since it was accepted."""
    await hub.base.lifecycle.wait_ready()
    return ServerAccount.from_account(hub.toolbox.admission.review(name))


@router.post(
    "/servers/{name}/accept",
    operation_id="accept_server",
    responses=error_responses(404, 409),
    openapi_extra=document_body(Accept, required=False),
    summary="Say yes to an external server",
)
async def accept_server(name: ServerName, hub: TheHub, request: Request) -> ServerStatus:
    """It starts at once. When what it says of itself is not what was accepted before, it is held back again."""
    wanted = await read_body(request, Accept)
    await hub.base.lifecycle.wait_ready()
    await hub.toolbox.admission.accept(name, wanted.digest)
    status = _status(hub, name)
    if status.state not in get_args(HoldState):
        hub.base.notices.clear(f"server_held:{name}")
    return status


@router.post(
    "/servers/{name}/reject",
    operation_id="reject_server",
    responses=error_responses(404),
    summary="Say no to an external server",
)
async def reject_server(name: ServerName, hub: TheHub) -> ServerStatus:
    """It stops, and does not start again before a yes."""
    await hub.base.lifecycle.wait_ready()
    await hub.toolbox.admission.reject(name)
    hub.base.notices.clear(f"server_held:{name}")
    return _status(hub, name)


def _status(hub: HubContext, name: str) -> ServerStatus:
    return next(status for status in hub.toolbox.servers() if status.name == name)
