"""`annabelle tokens`: gives programs, devices and other agents a token of their own."""

from __future__ import annotations

from typing import Annotated, cast
from urllib.parse import quote

import typer

from annabelle.cli.hub_client import get_rows, post_json
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import print_outcome, print_rows, print_secret
from annabelle.core.tools import JsonObject

Name = Annotated[str, typer.Argument(help="Name of the token: up to 40 of a-z, 0-9, - and _.")]
Kind = Annotated[str, typer.Option("--kind", help="person, device (speaks for you) or agent (never speaks for you).")]
Scopes = Annotated[
    list[str] | None,
    typer.Option("--scope", help="talk, threads, tools, approve, manage or tokens; may be given again."),
]

app = command_app("Give programs, devices and other agents tokens of their own.")


@run_by_default(app)
@app.command("list")
def list_tokens(json: Json = False) -> None:
    """List your tokens, what each may do and when it was used last."""
    found = get_rows("/tokens", "tokens")
    rows = [
        (
            str(one["name"]),
            str(one["kind"]),
            " ".join(cast("list[str]", one["scopes"])),
            str(one["lastUsedAt"] or "never")[:16].replace("T", " "),
        )
        for one in found
    ]
    print_rows({"tokens": found}, ("TOKEN", "KIND", "MAY", "LAST USED"), rows, "", json=json)


@app.command()
def add(name: Name, kind: Kind, scope: Scopes = None, json: Json = False) -> None:
    """Make a token, and print it once."""
    _print_token(post_json("/tokens", {"name": name, "kind": kind, "scopes": scope or None}), json=json)


@app.command()
def rotate(name: Name, json: Json = False) -> None:
    """Give a token a new secret, and print it once; the old one is no longer good."""
    _print_token(post_json(f"/tokens/{quote(name, safe='')}/rotate", {}), json=json)


@app.command()
def revoke(name: Name, json: Json = False) -> None:
    """Take a token back; its streams end at once."""
    gone = post_json(f"/tokens/{quote(name, safe='')}/revoke", {})
    print_outcome(gone, f"The token {gone['name']} is no longer good.", json=json)


def _print_token(made: JsonObject, *, json: bool) -> None:
    told = f"This is the token {made['name']}. It is kept nowhere, so hand it over now."
    print_secret(made, str(made["secret"]), told, json=json)
