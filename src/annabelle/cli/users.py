"""`annabelle users`: manages who besides the owner may talk to Annabelle."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from annabelle.cli.options import Json, command_app
from annabelle.cli.output import print_json, print_line, print_paragraph, print_table
from annabelle.core.home import Home
from annabelle.hub.security.users_file import add_user, read_users, remove_user

Name = Annotated[str, typer.Argument(help="Name of the person: up to 40 of a-z, 0-9, - and _.")]

app = command_app("Let other people talk to Annabelle, each with a memory of their own.")


@app.callback(invoke_without_command=True)
def users(context: typer.Context, json: Json = False) -> None:
    """Let other people talk to Annabelle, each with a memory of their own."""
    if context.invoked_subcommand is None:
        list_users(json=json)


@app.command("list")
def list_users(json: Json = False) -> None:
    """List the people beside the owner."""
    found = read_users(Home.from_environment().users_file).users
    if json:
        people = [user.model_dump(mode="json", by_alias=True, exclude={"token_sha256"}) for user in found]
        print_json({"users": people})
    elif found:
        rows = [(user.id, f"{user.created_at:%Y-%m-%d}", " ".join(user.allowed_tools) or "-") for user in found]
        print_table(("USER", "SINCE", "TOOLS BESIDE MEMORY"), rows)
    else:
        print_paragraph("Nobody but the owner may talk to this Annabelle. annabelle users add NAME lets somebody in.")


@app.command()
def add(name: Name, json: Json = False) -> None:
    """Let a person in, and print their token once."""
    token = add_user(Home.from_environment().prepare().users_file, name)
    if json:
        print_json({"id": name, "token": token})
        return
    print_line(token)
    sys.stderr.write(f"This is {name}'s token. It is kept nowhere, so hand it over now. A running hub knows it.\n")


@app.command()
def rm(name: Name, json: Json = False) -> None:
    """Let a person in no longer; what is remembered of them stays."""
    remove_user(Home.from_environment().users_file, name)
    if json:
        print_json({"id": name, "removed": True})
    else:
        print_line(f"{name} may no longer talk to this Annabelle.")
