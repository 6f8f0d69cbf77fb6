"""`annabelle connect telegram`: the user's own account, signed in with the code Telegram sends."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Annotated, cast

import typer

from annabelle.cli.connect.listing import name_of
from annabelle.cli.connect.telegram_asking import Application, Asking, Terminal, application_of, phone_of
from annabelle.cli.connect.telling import tell_hub
from annabelle.cli.options import Json
from annabelle.cli.output import print_json, print_line
from annabelle.cli.screen import clean
from annabelle.core.connections import TelegramAccount, write_connection
from annabelle.core.errors import OperatorMistake
from annabelle.core.home import Home
from annabelle.core.settings import load_settings

SignIn = Callable[[Application, str, Asking], TelegramAccount]


def connect_telegram(
    phone: Annotated[str | None, typer.Option("--phone", help="Your number with its country code, as +49….")] = None,
    json: Json = False,
) -> None:
    """Sign in to Telegram with your own account. Telegram sends a code to your other devices."""
    home = Home.from_environment()
    sign_in = _sign_in()
    application = application_of(load_settings(home))
    account = sign_in(application, phone_of(phone), Terminal())
    write_connection(home.prepare(), "telegram", account)
    told = tell_hub(home, "telegram")
    if json:
        print_json({"kind": "telegram", "account": name_of(account), "hub_told": told})
    else:
        print_line(f"Connected to Telegram as {clean(name_of(account))}.")


def _sign_in() -> SignIn:
    """Loaded when it is used: Telethon is large, and not everybody has it."""
    if importlib.util.find_spec("telethon") is None:
        raise OperatorMistake(
            "Telegram needs a library that is not installed.", hint="Run: pip install 'annabelle[telegram]'"
        )
    return cast("SignIn", importlib.import_module("annabelle.cli.connect.telegram_login").sign_in)
