"""`annabelle status`: what runs and how it is doing."""

from __future__ import annotations

import asyncio
from typing import cast

import typer

from annabelle.cli.hub_client import HubClient, read_hub_file
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import print_json, print_line, print_table
from annabelle.core.errors import HubUnreachable
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject

app = command_app()


@app.command()
def status(json: Json = False) -> None:
    """Show what runs and how it is doing. Exit code 5 when nothing runs."""
    home = Home.from_environment()
    try:
        found = asyncio.run(_status(home))
    except HubUnreachable:
        if json:
            print_json({"running": False})
            raise typer.Exit(HubUnreachable.exit_code) from None
        raise
    if json:
        print_json({"running": True, **found})
        return
    _draw(home, found)


async def _status(home: Home) -> JsonObject:
    async with HubClient.of(home) as client:
        return await client.get("/status")


def _draw(home: Home, found: JsonObject) -> None:
    note = read_hub_file(home)
    if note is not None:
        print_line(f"Annabelle {note.version} runs at {note.url} (process {note.pid}).")
    for title, key, columns in (
        ("AGENT", "agents", ("state", "model", "pid", "turns", "paused")),
        ("SERVER", "servers", ("state", "tools", "pid", "restarts", "last_error")),
    ):
        rows = _rows(found.get(key))
        if rows:
            print_line("")
            names = [(_text(row, "name") or _text(row, "agentId")) for row in rows]
            shown = [column for column in columns if any(column in row for row in rows)]
            print_table(
                (title, *(column.upper().replace("_", " ") for column in shown)),
                [(name, *(_text(row, column) for column in shown)) for name, row in zip(names, rows, strict=True)],
            )
    for notice in _rows(found.get("notices")):
        print_line(f"· {_text(notice, 'text')}")


def _rows(value: object) -> list[JsonObject]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("JsonObject", item) for item in items if isinstance(item, dict)]


def _text(row: JsonObject, name: str) -> str:
    value = row.get(name)
    return "" if value is None else str(value)
