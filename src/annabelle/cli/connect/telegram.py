"""`annabelle connect telegram`: connects the user's own account with a code from Telegram."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Protocol, cast

import typer
from pydantic import SecretStr

from annabelle.cli.connect.accounts import notify_hub
from annabelle.cli.options import Json
from annabelle.cli.output import clean, print_outcome
from annabelle.cli.terminal_input import ask_line
from annabelle.core.connections import TelegramAccount, account_name, write_connection
from annabelle.core.errors import CallerMistake, OperatorMistake
from annabelle.core.home import Home
from annabelle.core.settings import Settings, load_settings

_PHONE = re.compile(r"\+[0-9]{5,15}")
_MAKE_ONE = "Make an application at my.telegram.org and set TELEGRAM_API_ID and TELEGRAM_API_HASH."


@dataclass(frozen=True, slots=True)
class TelegramApplication:
    """An app registered at my.telegram.org."""

    api_id: int
    api_hash: SecretStr


class TelegramLoginPrompt(Protocol):
    """Asks the person who signs in. `again`: the last answer was wrong."""

    def code(self, *, again: bool) -> str: ...
    def password(self, *, again: bool) -> str: ...


class TerminalLoginPrompt:
    def code(self, *, again: bool) -> str:
        if again:
            sys.stderr.write("That code is wrong.\n")
        return ask_line("Code that Telegram sent you", "standard input")

    def password(self, *, again: bool) -> str:
        if again:
            sys.stderr.write("That password is wrong.\n")
        return ask_line("Password of your two-step verification", "standard input", secret=True)


def load_application(settings: Settings) -> TelegramApplication:
    """The application from the settings, or one the person types."""
    if settings.telegram_api_id is not None and settings.telegram_api_hash is not None:
        return TelegramApplication(settings.telegram_api_id, settings.telegram_api_hash)
    if not sys.stdin.isatty():
        raise OperatorMistake("There is no application id for Telegram yet.", hint=_MAKE_ONE)
    sys.stderr.write(f"{_MAKE_ONE} Or type them here.\n")
    api_id = ask_line("Application id", "TELEGRAM_API_ID")
    if not api_id.isdecimal() or not 0 < int(api_id[:12]) < 2**31:
        raise CallerMistake("This is not an application id.", hint="It is a number, shown at my.telegram.org.")
    return TelegramApplication(int(api_id), SecretStr(ask_line("Application hash", "TELEGRAM_API_HASH", secret=True)))


def parse_phone(given: str | None) -> str:
    written = given if given is not None else ask_line("Phone number with country code", "--phone")
    number = re.sub(r"[\s().-]", "", written)
    if not _PHONE.fullmatch(number):
        raise CallerMistake("This is not a phone number with its country code.", hint="Write it as +491511234567.")
    return number


SignIn = Callable[[TelegramApplication, str, TelegramLoginPrompt], TelegramAccount]


def connect_telegram(
    phone: Annotated[str | None, typer.Option("--phone", help="Your number with its country code, as +49….")] = None,
    json: Json = False,
) -> None:
    """Sign in to Telegram with your own account. Telegram sends a code to your other devices."""
    home = Home.from_environment()
    sign_in = _load_sign_in()
    application = load_application(load_settings(home))
    account = sign_in(application, parse_phone(phone), TerminalLoginPrompt())
    write_connection(home.prepare(), "telegram", account)
    told = notify_hub(home, "telegram")
    data = {"kind": "telegram", "account": account_name(account), "hub_told": told}
    print_outcome(data, f"Connected to Telegram as {clean(account_name(account))}.", json=json)


def _load_sign_in() -> SignIn:
    """Import Telethon only when it is used: it is large and optional."""
    if importlib.util.find_spec("telethon") is None:
        raise OperatorMistake(
            "Telegram needs a library that is not installed.", hint="Run: pip install 'annabelle[telegram]'"
        )
    return cast("SignIn", importlib.import_module("annabelle.cli.connect.telegram_session").sign_in)
