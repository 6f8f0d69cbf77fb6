"""`/channels`: which chat apps are connected, whose accounts may speak there, and their webhooks."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import Annotated, Final, cast

from fastapi import Path, Request
from pydantic import Field

from annabelle.core.errors import InvalidArguments, NotFound, TooLarge
from annabelle.core.messages import OWNER
from annabelle.core.tools import JsonObject
from annabelle.hub.api.endpoint import ApiAnswer, ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.context import HubContext
from annabelle.hub.security.users_file import USER_ID

router = ApiRouter("channels")
_MOST_BYTES: Final = 1024 * 1024
_SECRET: Final = "x-telegram-bot-api-secret-token"  # noqa: S105  the name of a header
ChannelName = Annotated[str, Path(max_length=40, examples=["telegram"])]


class LinkedAccountView(ApiAnswer):
    """An account whose messages are answered."""

    channel: str
    account_id: str
    user_id: str
    name: str
    created_at: datetime


class ChannelView(ApiAnswer):
    """One channel, and how it is."""

    name: str
    state: str
    account: str = Field(description="Annabelle's own name there")
    trouble: str | None
    since: datetime | None
    ignored: int = Field(description="Messages of strangers and programs since the start; nobody answered them")


class ChannelList(ApiAnswer):
    channels: list[ChannelView]
    accounts: list[LinkedAccountView]


class PairingRequest(ApiBody):
    """Whose account will be paired."""

    user_id: str = Field(default=OWNER, pattern=USER_ID)


class PairingView(ApiAnswer):
    code: str = Field(description="To be sent to Annabelle in that channel; used once")
    account: str = Field(description="Annabelle's own name there")
    invite: str = Field(description="An address that opens the chat and sends the code; may be empty")
    qr: list[str] = Field(description="The address as a QR code: a line of 0 and 1 (dark) for each row; may be empty")
    expires_at: datetime


class AccountLink(ApiBody):
    """An account that may speak without a code."""

    account_id: str = Field(min_length=1, max_length=200)
    user_id: str = Field(default=OWNER, pattern=USER_ID)


@router.get("/channels", **document("Chat apps and who may speak there"))
async def list_channels(hub: TheHub, _caller: Caller) -> ChannelList:
    """What is set up, and every account that was paired. An account that is not listed is not answered."""
    ignored = hub.conversations.channels.accounts.ignored
    views = [ChannelView.from_row(one, ignored=ignored[one.name]) for one in hub.conversations.channels.statuses()]
    accounts = [LinkedAccountView.from_row(one) for one in await hub.conversations.channels.accounts.list()]
    return ChannelList(channels=views, accounts=accounts)


@router.post("/channels/{name}/pair", **document("Make a pairing code", 404, body=PairingRequest))
async def pair_channel(name: ChannelName, hub: TheHub, _caller: Caller, request: Request) -> PairingView:
    """Whoever sends this code in the channel within ten minutes is that person from then on."""
    wanted = await read_body(request, PairingRequest)
    status = next((one for one in hub.conversations.channels.statuses() if one.name == name), None)
    if status is None:
        raise NotFound(f"{name} is not set up.", hint="docs/channels.md says how.")
    _check_user(hub, wanted.user_id)
    made = hub.conversations.channels.accounts.make_code(name, wanted.user_id)
    invite = status.invite.format(code=made.code)
    qr = await asyncio.to_thread(_draw_code, invite) if invite else []
    return PairingView(code=made.code, account=status.account, invite=invite, qr=qr, expires_at=made.expires_at)


@router.post("/channels/{name}/accounts", **document("Let an account speak", 404, body=AccountLink))
async def link_account(name: ChannelName, hub: TheHub, _caller: Caller, request: Request) -> LinkedAccountView:
    """For an account whose id you know."""
    wanted = await read_body(request, AccountLink)
    if name not in hub.conversations.channels.names:
        raise NotFound(f"{name} is not set up.", hint="docs/channels.md says how.")
    _check_user(hub, wanted.user_id)
    return LinkedAccountView.from_row(
        await hub.conversations.channels.accounts.link(name, wanted.account_id, wanted.user_id)
    )


@router.post("/channels/{name}/accounts/{account_id}/delete", **document("Take an account back", 404))
async def unlink_account(
    name: ChannelName, account_id: Annotated[str, Path(max_length=200)], hub: TheHub, _caller: Caller
) -> LinkedAccountView:
    """It is a stranger again, at once."""
    return LinkedAccountView.from_row(await hub.conversations.channels.accounts.unlink(name, account_id))


@router.post("/channels/{name}/webhook", include_in_schema=False)
async def receive_update(name: ChannelName, hub: TheHub, request: Request) -> JsonObject:
    """Answered once it is stored; it needs the secret that the channel was given, and no token."""
    body = await request.body()
    if len(body) > _MOST_BYTES:
        raise TooLarge("The update is too large.")
    secret = request.headers.get(_SECRET, "")
    try:
        update: object = json.loads(body)
    except (ValueError, RecursionError):
        update = None
    if not isinstance(update, dict):
        raise InvalidArguments("The update is no JSON object.")
    await hub.conversations.channels.receive_webhook(name, secret, cast("JsonObject", update))
    return {}


def _draw_code(address: str) -> list[str]:
    import segno  # noqa: PLC0415  loading it takes long, and pairing is rare

    return ["".join(map(str, row)) for row in segno.make(address, error="l").matrix]


def _check_user(hub: HubContext, user_id: str) -> None:
    if not hub.security.users.is_known(user_id):
        raise NotFound(f"There is no user {user_id}.", hint=f"Add them first: annabelle users add {user_id}")
