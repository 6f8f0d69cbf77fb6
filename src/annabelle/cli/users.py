"""`annabelle users`: manages who besides the owner may talk to Annabelle."""

from __future__ import annotations

from typing import Annotated

import typer

from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import print_outcome, print_rows, print_secret
from annabelle.core.home import Home
from annabelle.hub.security.users_file import add_user, read_users, remove_user, set_admin

Name = Annotated[str, typer.Argument(help="Name of the person: up to 40 of a-z, 0-9, - and _.")]

app = command_app("Let other people talk to Annabelle, each with a memory of their own.")


@run_by_default(app)
@app.command("list")
def list_users(json: Json = False) -> None:
    """List the people beside the owner."""
    found = read_users(Home.from_environment().users_file).users
    people = [user.model_dump(mode="json", by_alias=True, exclude={"token_sha256"}) for user in found]
    rows = [
        (user.id, f"{user.created_at:%Y-%m-%d}", "yes" if user.admin else "no", " ".join(user.allowed_tools) or "-")
        for user in found
    ]
    empty = "Nobody but the owner may talk to this Annabelle. annabelle users add NAME lets somebody in."
    print_rows({"users": people}, ("USER", "SINCE", "ADMIN", "TOOLS BESIDE MEMORY"), rows, empty, json=json)


@app.command()
def add(name: Name, json: Json = False) -> None:
    """Let a person in, and print their token once."""
    token = add_user(Home.from_environment().prepare().users_file, name)
    told = f"This is {name}'s token. It is kept nowhere, so hand it over now. A running hub knows it."
    print_secret({"id": name, "token": token}, token, told, json=json)


@app.command()
def admin(
    name: Name,
    revoke: Annotated[bool, typer.Option("--revoke", help="No longer an admin.")] = False,
    json: Json = False,
) -> None:
    """Let a person use the commands of the chat that are for admins: /kill, /resume, /delete, /logs and others."""
    set_admin(Home.from_environment().users_file, name, admin=not revoke)
    sentence = f"{name} is no longer an admin." if revoke else f"{name} is an admin now."
    print_outcome({"id": name, "admin": not revoke}, sentence, json=json)


@app.command()
def rm(name: Name, json: Json = False) -> None:
    """Let a person in no longer; what is remembered of them stays."""
    remove_user(Home.from_environment().users_file, name)
    print_outcome({"id": name, "removed": True}, f"{name} may no longer talk to this Annabelle.", json=json)
