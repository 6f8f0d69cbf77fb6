"""`/accounts`: which accounts are connected, and connecting a mailbox. The others need a terminal."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Literal

from fastapi import Request, Response
from pydantic import Field, SecretStr

from annabelle.core.connections import KINDS, SERVERS, read_state, remove_connection
from annabelle.core.errors import InvalidArguments, NotFound, OperatorMistake
from annabelle.core.mail_account import MailboxInput, connect_mailbox
from annabelle.hub.api.endpoint import ApiAnswer, ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.context import HubContext

router = ApiRouter("accounts")
_LINE = r"^[^\x00-\x1f\x7f]*$"


class AccountView(ApiAnswer):
    kind: str = Field(examples=["google", "mail", "telegram"])
    account: str | None = Field(description="The name its owner knows; null if there is none")
    state: Literal["connected", "missing", "damaged"]
    command: str = Field(description="What connects it in a terminal")


class AccountList(ApiAnswer):
    accounts: list[AccountView]


class MailboxBody(ApiBody):
    """A mailbox. What is left out follows from the address."""

    address: str = Field(max_length=320, pattern=_LINE, examples=["ada@example.org"])
    password: SecretStr = Field(min_length=1, max_length=1000)
    username: str | None = Field(default=None, max_length=320, pattern=_LINE)
    imap: str | None = Field(default=None, max_length=300, description="Server to read from, as host:port")
    smtp: str | None = Field(default=None, max_length=300, description="Server to send with, as host:port")
    security: Literal["tls", "starttls", "none"] | None = None
    caldav: str | None = Field(default=None, max_length=2000, description="Address of the calendar")


class MailboxAnswer(ApiAnswer):
    account: str
    calendar: bool
    without_calendar: str | None = Field(description="Why it has none although its provider has one")


@router.get("/accounts", **document("Which accounts are connected"))
async def list_accounts(hub: TheHub) -> AccountList:
    """Never with their secrets."""
    found = await asyncio.to_thread(lambda: [read_state(hub.base.home, kind) for kind in KINDS])
    return AccountList(accounts=[AccountView.from_row(one, command=f"annabelle connect {one.kind}") for one in found])


@router.post("/accounts/mail", **document("Connect a mailbox", 400, body=MailboxBody))
async def connect_mail_account(hub: TheHub, caller: Caller, request: Request) -> MailboxAnswer:
    """Its servers are tried first; what they refuse is not kept. It counts at once."""
    wanted = await read_body(request, MailboxBody)
    hub.base.redact.learn([wanted.password.get_secret_value()])
    given = MailboxInput(**wanted.model_dump(exclude={"password"}))
    authority = hub.base.settings.mail_ca_file.strip()

    def connect() -> MailboxAnswer:
        made = connect_mailbox(hub.base.home, given, lambda: wanted.password, authority=authority)
        calendar = made.account.caldav_url is not None
        return MailboxAnswer(account=given.address, calendar=calendar, without_calendar=made.without_calendar)

    try:
        connected = await asyncio.to_thread(connect)
    except OperatorMistake as mistake:
        raise InvalidArguments(mistake.message, hint=mistake.hint) from mistake
    await _tell(hub, caller.user_id, "connected")
    return connected


@router.post("/accounts/mail/remove", status_code=204, **document("Forget the mailbox", 404))
async def remove_mail_account(hub: TheHub, caller: Caller) -> Response:
    """Its mail stays where it is. An app password is to be deleted at the provider."""
    if not await asyncio.to_thread(remove_connection, hub.base.home, "mail"):
        raise NotFound("No mailbox is connected.")
    await _tell(hub, caller.user_id, "removed")
    return Response(status_code=204)


async def _tell(hub: HubContext, user_id: str, event: str) -> None:
    """Let the server that uses the account read it again, and record the change."""
    hub.security.audit.note("config", {"event": event, "what": "accounts", "account": "mail", "by": user_id})
    with contextlib.suppress(NotFound):  # it is switched off
        await hub.toolbox.restart(SERVERS["mail"])
