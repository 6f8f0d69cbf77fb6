"""`annabelle channels`: which chat apps are connected, and whose accounts may speak there."""

from __future__ import annotations

import io
import time
from typing import Annotated, Final, cast
from urllib.parse import quote

import segno
import typer

from annabelle.cli.hub_client import get_json, post_json
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import clean, print_json, print_line, print_outcome, print_rows
from annabelle.core.messages import OWNER
from annabelle.core.tools import JsonObject

Channel = Annotated[str, typer.Argument(help="The channel, as the list shows it: telegram.")]
Account = Annotated[str, typer.Argument(metavar="ACCOUNT", help="Number or address of the account in that channel.")]
User = Annotated[str, typer.Option("--user", help="Whose account it is.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the code was used.")]
_POLL_SECONDS: Final = 1.0

app = command_app("See which chat apps are connected, and let accounts speak there.")


@run_by_default(app)
@app.command("list")
def list_channels(json: Json = False) -> None:
    """List the channels and the accounts that are answered there; everybody else is ignored."""
    answer = get_json("/channels")
    if json:
        print_json(answer)
        return
    channels = _rows(answer, "channels")
    rows = [
        tuple(clean(str(one[field] or "")) for field in ("name", "account", "state", "trouble", "ignored"))
        for one in channels
    ]
    empty = "No channel is set up. Give your bot's token: annabelle config set TELEGRAM_BOT_TOKEN"
    print_rows(answer, ("CHANNEL", "AS", "STATE", "TROUBLE", "IGNORED"), rows, empty, json=False)
    accounts = [
        (str(one["channel"]), clean(str(one["accountId"])), clean(str(one["name"])), str(one["userId"]))
        for one in _rows(answer, "accounts")
    ]
    if channels:
        nobody = "Nobody is paired, so nobody is answered: annabelle channels pair telegram"
        print_line("")
        print_rows(answer, ("CHANNEL", "ACCOUNT", "NAME", "USER"), accounts, nobody, json=False)


@app.command()
def pair(channel: Channel = "telegram", user: User = OWNER, wait: Wait = True, json: Json = False) -> None:
    """Show a code; the account that sends it to Annabelle within ten minutes is answered from then on."""
    known = _accounts(channel)
    made = post_json(f"/channels/{quote(channel, safe='')}/pair", {"userId": user})
    if json:
        print_json(made)
        return
    code, account = str(made["code"]), clean(str(made["account"])) or "Annabelle"
    print_line(f"Send this to {account}:  /start {code}")
    if made["invite"]:
        print_line(f"Or open: {clean(str(made['invite']))}")
        print_line(_draw_code(str(made["invite"])))
    print_line("It can be used once, within ten minutes.")
    if wait:
        print_line("Waiting; Ctrl-C leaves, and the code stays.")
        while not (new := _accounts(channel) - known):
            time.sleep(_POLL_SECONDS)
        print_line(f"Paired: {clean(', '.join(sorted(new)))} is {user} now.")


@app.command()
def allow(channel: Channel, account: Account, user: User = OWNER, json: Json = False) -> None:
    """Let an account speak whose number or address you know."""
    linked = post_json(f"/channels/{quote(channel, safe='')}/accounts", {"accountId": account, "userId": user})
    print_outcome(linked, f"{clean(account)} is {user} in {channel} now.", json=json)


@app.command()
def remove(channel: Channel, account: Account, json: Json = False) -> None:
    """Take an account back: it is a stranger again, at once."""
    gone = post_json(f"/channels/{quote(channel, safe='')}/accounts/{quote(account, safe='')}/delete", {})
    print_outcome(gone, f"{clean(account)} is not answered any more.", json=json)


def _rows(answer: JsonObject, name: str) -> list[JsonObject]:
    return cast("list[JsonObject]", answer[name])


def _accounts(channel: str) -> set[str]:
    found = _rows(get_json("/channels"), "accounts")
    return {str(one["accountId"]) for one in found if one["channel"] == channel}


def _draw_code(address: str) -> str:
    drawn = io.StringIO()
    segno.make(address, error="l").terminal(drawn, compact=True)
    return drawn.getvalue().rstrip("\n")
