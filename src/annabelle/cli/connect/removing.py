"""`annabelle connect remove`: forgets an account here, and says how to withdraw access there."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, cast

import typer

from annabelle.cli.connect.google_access import GoogleAddresses, revoke
from annabelle.cli.connect.listing import look
from annabelle.cli.connect.telling import tell_hub
from annabelle.cli.memory.asking import confirm
from annabelle.cli.options import Json
from annabelle.cli.output import print_json, print_line, print_paragraph
from annabelle.cli.patience import Patience
from annabelle.cli.screen import clean
from annabelle.core.connections import GoogleAccount, TelegramAccount, read_connection, remove_connection
from annabelle.core.errors import ConfigMistake, NotFound
from annabelle.core.home import Home
from annabelle.core.settings import load_settings

_THERE = {
    "google": "Google did not confirm that access is withdrawn; do it at myaccount.google.com/permissions.",
    "mail": "If you made an app password for Annabelle, delete it at your mail provider.",
    "telegram": "Telegram did not confirm that the session is over; end it there: Settings, Devices, Annabelle.",
}
_WITHDRAWN = {
    "google": "Google has withdrawn the access too.",
    "telegram": "Telegram has ended the session too.",
}


class Kind(StrEnum):
    """What can be connected."""

    GOOGLE = "google"
    MAIL = "mail"
    TELEGRAM = "telegram"


def remove(
    kind: Annotated[Kind, typer.Argument(help="Which account to forget.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Forget an account here. At Google and Telegram access is withdrawn too; for a mailbox it says how to."""
    home = Home.from_environment()
    there = look(home, kind)
    if there.state == "missing":
        raise NotFound(f"No {kind} account is connected.", hint="See what is: annabelle connect")
    if not yes:
        confirm(f"Forget the {kind} account {clean(there.account or '')}?".replace(" ?", "?"))
    withdrawn = (kind is Kind.GOOGLE and _withdraw_google(home)) or (kind is Kind.TELEGRAM and _leave_telegram(home))
    remove_connection(home, kind)
    told = tell_hub(home, kind)
    if json:
        print_json({"kind": kind, "account": there.account, "removed": True, "withdrawn": withdrawn, "hub_told": told})
        return
    print_line(f"The {kind} account is forgotten here.")
    print_paragraph(_WITHDRAWN[kind] if withdrawn else _THERE[kind])


def _withdraw_google(home: Home) -> bool:
    try:
        account = read_connection(home, "google", GoogleAccount)
    except ConfigMistake:
        return False
    if account is None:
        return False
    addresses = GoogleAddresses.at(load_settings(home).google_api_url)
    with Patience("Withdrawing access at Google"):
        return asyncio.run(revoke(addresses, account.refresh_token))


def _leave_telegram(home: Home) -> bool:
    """Telethon is large, and not everybody has it: loaded when there is a session to end."""
    try:
        account = read_connection(home, "telegram", TelegramAccount)
    except ConfigMistake:
        return False
    if account is None or importlib.util.find_spec("telethon") is None:
        return False
    leaving = importlib.import_module("annabelle.cli.connect.telegram_leaving")
    end_session = cast("Callable[[TelegramAccount], bool]", leaving.end_session)
    with Patience("Ending the session at Telegram"):
        return end_session(account)
