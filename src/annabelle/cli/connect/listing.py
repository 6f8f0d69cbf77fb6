"""What is connected, by whose name, and never with what."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from annabelle.cli.output import print_json, print_table
from annabelle.cli.screen import clean
from annabelle.core.connections import KINDS, GoogleAccount, MailAccount, TelegramAccount, read_connection
from annabelle.core.errors import ConfigMistake
from annabelle.core.home import Home


@dataclass(frozen=True, slots=True)
class Connected:
    """One kind of account. `account` is what its owner calls it, None when there is none."""

    kind: str
    account: str | None
    state: str


def show(*, json: bool) -> None:
    """A table for a person, a document for a machine."""
    found = [look(Home.from_environment(), kind) for kind in KINDS]
    if json:
        print_json({"connections": [{"kind": one.kind, "account": one.account, "state": one.state} for one in found]})
        return
    rows = [(one.kind, clean(one.account or "-"), _words(one)) for one in found]
    print_table(("KIND", "ACCOUNT", "STATE"), rows)


def look(home: Home, kind: str) -> Connected:
    """How it stands with one kind; a file that can not be read is a state, not a failure of the list."""
    try:
        account = read_connection(home, kind, KINDS[kind])
    except ConfigMistake:
        return Connected(kind, None, "damaged")
    return Connected(kind, None, "missing") if account is None else Connected(kind, name_of(account), "connected")


def name_of(account: BaseModel) -> str:
    """What the owner knows an account by."""
    match account:
        case GoogleAccount(email=email):
            return email
        case MailAccount(address=address):
            return address
        case TelegramAccount(phone=phone, name=name):
            return " ".join(filter(None, (name, phone)))
        case _:
            return ""


def _words(one: Connected) -> str:
    return {
        "connected": "connected",
        "missing": f"not connected: annabelle connect {one.kind}",
        "damaged": f"its file can not be read: annabelle connect {one.kind}",
    }[one.state]
