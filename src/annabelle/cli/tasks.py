"""`annabelle tasks`: lists work that agents handed to subagents or to the background."""

from __future__ import annotations

import asyncio
from typing import cast

from annabelle.cli.hub_client import CliHubClient
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import clean, print_json, print_paragraph, print_table
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject

app = command_app()
_KINDS = {"subagent": "subagent", "tool_call": "tool call"}


@app.command()
def tasks(json: Json = False) -> None:
    """List the work that agents handed on, newest first."""
    found = asyncio.run(_fetch_tasks())
    if json:
        print_json({"tasks": found})
    elif found:
        print_table(("TASK", "KIND", "STATE", "SINCE", "NAME"), [_row(task) for task in found])
    else:
        print_paragraph("Nothing was handed on yet: neither to a subagent nor to the background.")


async def _fetch_tasks() -> list[JsonObject]:
    async with CliHubClient.for_home(Home.from_environment()) as client:
        return cast("list[JsonObject]", (await client.get("/tasks"))["tasks"])


def _row(task: JsonObject) -> tuple[str, ...]:
    kind = _KINDS.get(str(task["kind"]), str(task["kind"]))
    since = str(task["createdAt"])[:16]
    return str(task["taskId"]), kind, str(task["state"]), since, clean(str(task["name"]))
