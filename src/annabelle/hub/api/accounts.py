"""`/accounts`: which accounts are connected, and connecting a mailbox or Google. Telegram needs a terminal."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Literal

from fastapi import Request, Response
from pydantic import Field, SecretStr

from annabelle.core.connections import (
    KINDS,
    SERVERS,
    GoogleAccount,
    read_state,
    remove_connection,
    write_connection,
)
from annabelle.core.errors import Conflict, InvalidArguments, NotFound, OperatorMistake
from annabelle.core.google_oauth import SCOPES, GoogleOAuthUrls, OAuthClient, withdraw
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


class GoogleClient(ApiBody):
    """The OAuth client that the person made at Google. What is left out is taken from the settings."""

    client_id: str | None = Field(default=None, max_length=300, pattern=_LINE)
    client_secret: SecretStr | None = Field(default=None, max_length=300)


class GoogleAddress(ApiAnswer):
    url: str = Field(description="Where to sign in, in a browser on the machine of the hub, within five minutes")


class GoogleAnswer(ApiAnswer):
    account: str
    not_allowed: list[str] = Field(description="What the person did not tick")


class RemovedAccount(ApiAnswer):
    withdrawn: bool = Field(description="Whether Google confirmed that the access has ended")


@router.get("/accounts", **document("Which accounts are connected"))
async def list_accounts(hub: TheHub) -> AccountList:
    """Never with their secrets."""
    found = await asyncio.to_thread(lambda: [read_state(hub.base.home, kind) for kind in KINDS])
    return AccountList(accounts=[AccountView.from_row(one, command=f"annabelle connect {one.kind}") for one in found])


@router.post("/accounts/mail", **document("Connect a mailbox", 400, body=MailboxBody))
async def connect_mail_account(hub: TheHub, caller: Caller, request: Request) -> MailboxAnswer:
    """Its servers are tried first; what they refuse is not kept. It counts at once."""
    from annabelle.core.mail_account import MailboxInput, connect_mailbox  # noqa: PLC0415  a hub rarely connects one

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
    await _tell(hub, caller.user_id, "mail", "connected")
    return connected


@router.post("/accounts/mail/remove", status_code=204, **document("Forget the mailbox", 404))
async def remove_mail_account(hub: TheHub, caller: Caller) -> Response:
    """Its mail stays where it is. An app password is to be deleted at the provider."""
    if not await asyncio.to_thread(remove_connection, hub.base.home, "mail"):
        raise NotFound("No mailbox is connected.")
    await _tell(hub, caller.user_id, "mail", "removed")
    return Response(status_code=204)


@router.post("/accounts/google", **document("Begin to sign in at Google", 409, body=GoogleClient))
async def begin_google_sign_in(hub: TheHub, caller: Caller, request: Request) -> GoogleAddress:
    """Mail and calendar are connected when the person has allowed it there, also if nobody waits for it."""
    wanted, settings = await read_body(request, GoogleClient), hub.base.settings
    client_id, secret = wanted.client_id or settings.google_client_id, wanted.client_secret
    if secret is None and client_id == settings.google_client_id:
        secret = settings.google_client_secret
    if not client_id or secret is None:
        raise Conflict(
            "There is no OAuth client for Google yet.",
            hint="Make one of the type desktop app at console.cloud.google.com, and give its id and secret here.",
        )
    hub.base.redact.learn([secret.get_secret_value()])

    async def keep(account: GoogleAccount) -> None:
        hub.base.redact.learn([account.refresh_token.get_secret_value()])
        await asyncio.to_thread(write_connection, hub.base.home, "google", account)
        await _tell(hub, caller.user_id, "google", "connected")

    addresses = GoogleOAuthUrls.from_base(settings.google_api_url)
    return GoogleAddress(url=await hub.services.upkeep.sign_in.begin(addresses, OAuthClient(client_id, secret), keep))


@router.post("/accounts/google/wait", **document("Wait for the sign-in at Google", 400, 404, 503))
async def wait_for_google(hub: TheHub) -> GoogleAnswer:
    """Answers when the person has decided, or after five minutes."""
    try:
        account = await hub.services.upkeep.sign_in.wait()
    except OperatorMistake as mistake:
        raise InvalidArguments(mistake.message, hint=mistake.hint) from mistake
    missing = [name for scope, name in SCOPES.items() if scope not in account.scopes]
    return GoogleAnswer(account=account.email, not_allowed=missing)


@router.post("/accounts/google/remove", **document("Forget the Google account", 404))
async def remove_google_account(hub: TheHub, caller: Caller) -> RemovedAccount:
    """Its access is ended at Google too, as far as Google confirms that."""
    home = hub.base.home
    withdrawn = await withdraw(home, GoogleOAuthUrls.from_base(hub.base.settings.google_api_url))
    if not await asyncio.to_thread(remove_connection, home, "google"):
        raise NotFound("No Google account is connected.")
    await _tell(hub, caller.user_id, "google", "removed")
    return RemovedAccount(withdrawn=withdrawn)


async def _tell(hub: HubContext, user_id: str, kind: str, event: str) -> None:
    """Let the server that uses the account read it again, and record the change."""
    hub.security.audit.note("config", {"event": event, "what": "accounts", "account": kind, "by": user_id})
    with contextlib.suppress(NotFound):  # it is switched off
        await hub.toolbox.restart(SERVERS[kind])
