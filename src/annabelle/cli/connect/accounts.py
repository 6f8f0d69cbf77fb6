"""Connected accounts: lists and removes them, and tells a running hub about changes."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, cast

import typer

from annabelle.cli.hub_client import ask_hub
from annabelle.cli.memory.client import confirm
from annabelle.cli.options import Json
from annabelle.cli.output import clean, print_json, print_line, print_paragraph, print_table
from annabelle.cli.spinner import Spinner
from annabelle.core.connections import (
    KINDS,
    SERVERS,
    ConnectionState,
    TelegramAccount,
    read_connection,
    read_state,
    remove_connection,
)
from annabelle.core.errors import AnnabelleError, ConfigMistake, HubUnreachable, NotFound
from annabelle.core.google_oauth import GoogleOAuthUrls, withdraw
from annabelle.core.home import Home
from annabelle.core.settings import load_settings


def print_connections(*, json: bool) -> None:
    found = [read_state(Home.from_environment(), kind) for kind in KINDS]
    if json:
        print_json({"connections": [asdict(one) for one in found]})
        return
    rows = [(one.kind, clean(one.account or "-"), _describe_state(one)) for one in found]
    print_table(("KIND", "ACCOUNT", "STATE"), rows)


def _describe_state(one: ConnectionState) -> str:
    return {
        "connected": "connected",
        "missing": f"not connected: annabelle connect {one.kind}",
        "damaged": f"its file can not be read: annabelle connect {one.kind}",
    }[one.state]


def notify_hub(home: Home, kind: str) -> bool:
    """Whether a running hub took the change. Otherwise it reads the account at its next start."""
    try:
        ask_hub(lambda client: client.post(f"/servers/{SERVERS[kind]}/restart", {}), home)
    except (HubUnreachable, NotFound):
        return False  # the hub does not run or has this server disabled
    except AnnabelleError as error:
        sys.stderr.write(f"Annabelle runs but did not take it yet: {error.message}\nRun: annabelle restart\n")
        return False
    return True


_THERE = {
    "google": "Google did not confirm that access is withdrawn; do it at myaccount.google.com/permissions.",
    "mail": "If you made an app password for Annabelle, delete it at your mail provider.",
    "telegram": "Telegram did not confirm that the session is over; end it there: Settings, Devices, Annabelle.",
}
_WITHDRAWN = {
    "google": "Google has withdrawn the access too.",
    "telegram": "Telegram has ended the session too.",
}


class AccountKind(StrEnum):
    GOOGLE = "google"
    MAIL = "mail"
    TELEGRAM = "telegram"


def remove(
    kind: Annotated[AccountKind, typer.Argument(help="Which account to forget.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Forget an account here. At Google and Telegram access is withdrawn too; for a mailbox it says how to."""
    home = Home.from_environment()
    there = read_state(home, kind)
    if there.state == "missing":
        raise NotFound(f"No {kind} account is connected.", hint="See what is: annabelle connect")
    if not yes:
        confirm(f"Forget the {kind} account {clean(there.account or '')}?".replace(" ?", "?"))
    withdrawn = (kind is AccountKind.GOOGLE and _withdraw_google(home)) or (
        kind is AccountKind.TELEGRAM and _end_telegram_session(home)
    )
    remove_connection(home, kind)
    told = notify_hub(home, kind)
    if json:
        print_json({"kind": kind, "account": there.account, "removed": True, "withdrawn": withdrawn, "hub_told": told})
        return
    print_line(f"The {kind} account is forgotten here.")
    print_paragraph(_WITHDRAWN[kind] if withdrawn else _THERE[kind])


def _withdraw_google(home: Home) -> bool:
    with Spinner("Withdrawing access at Google"):
        return asyncio.run(withdraw(home, GoogleOAuthUrls.from_base(load_settings(home).google_api_url)))


def _end_telegram_session(home: Home) -> bool:
    """Import Telethon only if there is a session to end: it is large and optional."""
    try:
        account = read_connection(home, "telegram", TelegramAccount)
    except ConfigMistake:
        return False
    if account is None or importlib.util.find_spec("telethon") is None:
        return False
    leaving = importlib.import_module("annabelle.cli.connect.telegram_session")
    end_session = cast("Callable[[TelegramAccount], bool]", leaving.end_session)
    with Spinner("Ending the session at Telegram"):
        return end_session(account)
