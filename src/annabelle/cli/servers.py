"""`annabelle servers`: lists servers, and accepts or rejects external ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, cast
from urllib.parse import quote

import typer

from annabelle.cli.hub_client import get_json, get_rows, post_json
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import clean, print_json, print_line, print_outcome, print_paragraph, print_table
from annabelle.core.tools import JsonObject

_START_SECONDS = 120.0
Name = Annotated[str, typer.Argument(help="Name of the server in external-mcps.json.")]

app = command_app("See the servers, and accept or reject those you added.")


@run_by_default(app)
@app.command("list")
def list_servers(json: Json = False) -> None:
    """List all servers and how they are doing."""
    found = get_rows("/servers", "servers")
    if json:
        print_json({"servers": found})
        return
    rows = [(str(row["name"]), str(row["kind"]), str(row["state"]), str(row["tools"]), _why(row)) for row in found]
    print_table(("SERVER", "KIND", "STATE", "TOOLS", ""), rows)


@app.command()
def show(name: Name, json: Json = False) -> None:
    """Show what an external server is: its entry and all it says of itself."""
    found = _fetch_review(name)
    if json:
        print_json(found)
        return
    _print_lines(cast("list[str]", found["entry"]))
    _print_lines(cast("list[str]", found["server"]))
    if found["why"] is not None:
        print_paragraph(f"It is held back: {clean(str(found['why']))}")


@app.command()
def diff(name: Name, json: Json = False) -> None:
    """Show what has changed in a server since you accepted it."""
    found = _fetch_review(name)
    if json:
        print_json(found)
    elif found["held"] is None:
        print_paragraph(f"{name} is what you accepted.")
    else:
        _print_lines(str(found["diff"]).split("\n"))
        print_paragraph(f"It is held back: {clean(str(found['why']))}")


@app.command()
def accept(name: Name, json: Json = False) -> None:
    """Say yes to a server as it is now: show what that is, and let it run."""
    found = _fetch_review(name)
    if not json:
        _print_lines(str(found["diff"]).split("\n") if found["diff"] else [])
    # Without a digest, this would also accept a change that comes in the next moment.
    digest = found["digest"] or "nothing held it back"
    status = post_json(f"/servers/{quote(name, safe='')}/accept", {"digest": digest}, _START_SECONDS)
    if json:
        print_json(status)
    elif status["available"]:
        print_paragraph(f"{name} runs, with {status['tools']} tools. A change in it will be held back.")
    else:
        print_paragraph(f"{name} is accepted and does not run yet: {_why(status)}")


@app.command()
def reject(name: Name, json: Json = False) -> None:
    """Say no to a server: it stops, and does not start again before a yes."""
    status = post_json(f"/servers/{quote(name, safe='')}/reject", {}, _START_SECONDS)
    sentence = f"{name} is stopped and stays so. Take it out of external-mcps.json if you do not want it."
    print_outcome(status, sentence, json=json)


def _fetch_review(name: str) -> JsonObject:
    return get_json(f"/servers/{quote(name, safe='')}")


def _print_lines(lines: Sequence[str]) -> None:
    for line in lines:
        print_line(clean(line))


def _why(row: JsonObject) -> str:
    return clean(str(row.get("missing") or row.get("lastError") or ""))
