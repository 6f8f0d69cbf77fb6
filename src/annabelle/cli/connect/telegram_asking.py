"""What signing in to Telegram has to ask a person."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Protocol

from pydantic import SecretStr

from annabelle.cli.connect.asking import ask
from annabelle.core.errors import CallerMistake, OperatorMistake
from annabelle.core.settings import Settings

_PHONE = re.compile(r"\+[0-9]{5,15}")
_MAKE_ONE = "Make an application at my.telegram.org and set TELEGRAM_API_ID and TELEGRAM_API_HASH."


@dataclass(frozen=True, slots=True)
class Application:
    """What my.telegram.org calls an app."""

    api_id: int
    api_hash: SecretStr


class Asking(Protocol):
    """The person who signs in. `again`: the last answer was wrong."""

    def code(self, *, again: bool) -> str: ...
    def password(self, *, again: bool) -> str: ...


class Terminal:
    """The person in front of the terminal."""

    def code(self, *, again: bool) -> str:
        if again:
            sys.stderr.write("That code is wrong.\n")
        return ask("Code that Telegram sent you", "standard input")

    def password(self, *, again: bool) -> str:
        if again:
            sys.stderr.write("That password is wrong.\n")
        return ask("Password of your two-step verification", "standard input", secret=True)


def application_of(settings: Settings) -> Application:
    """The application of the settings, or the one that is asked for."""
    if settings.telegram_api_id is not None and settings.telegram_api_hash is not None:
        return Application(settings.telegram_api_id, settings.telegram_api_hash)
    if not sys.stdin.isatty():
        raise OperatorMistake("There is no application id for Telegram yet.", hint=_MAKE_ONE)
    sys.stderr.write(f"{_MAKE_ONE} Or type them here.\n")
    api_id = ask("Application id", "TELEGRAM_API_ID")
    if not api_id.isdecimal() or not 0 < int(api_id[:12]) < 2**31:
        raise CallerMistake("This is not an application id.", hint="It is a number, shown at my.telegram.org.")
    return Application(int(api_id), SecretStr(ask("Application hash", "TELEGRAM_API_HASH", secret=True)))


def phone_of(given: str | None) -> str:
    """A number as Telegram wants it."""
    written = given if given is not None else ask("Phone number with country code", "--phone")
    number = re.sub(r"[\s().-]", "", written)
    if not _PHONE.fullmatch(number):
        raise CallerMistake("This is not a phone number with its country code.", hint="Write it as +491511234567.")
    return number
