"""`annabelle sessions`: lists conversations and clears one."""

from __future__ import annotations

import asyncio
from typing import Annotated, cast
from urllib.parse import quote

import typer

from annabelle.cli.hub_client import CliHubClient
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import clean, print_json, print_line, print_paragraph, print_table
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject

Thread = Annotated[str, typer.Argument(help="Id of the conversation, as annabelle sessions lists it.")]

app = command_app("List your conversations, or start one afresh.")


@app.callback(invoke_without_command=True)
def sessions(context: typer.Context, json: Json = False) -> None:
    """List your conversations, or start one afresh."""
    if context.invoked_subcommand is None:
        list_sessions(json=json)


@app.command("list")
def list_sessions(json: Json = False) -> None:
    """List your conversations, the one used last first."""
    found = asyncio.run(_fetch_threads())
    if json:
        print_json({"sessions": found})
    elif found:
        rows = [
            (
                str(one["id"]),
                clean(f"{one['channel']} {one['chatId']}"),
                str(one["agentId"]),
                str(one["updatedAt"])[:16],
            )
            for one in found
        ]
        print_table(("SESSION", "CHAT", "AGENT", "LAST USED"), rows)
    else:
        print_paragraph("Nothing was said yet. Begin with: annabelle chat")


@app.command()
def clear(session: Thread, json: Json = False) -> None:
    """Archive what was said in a conversation and start it afresh. Annabelle can still search the archive."""
    cleared = asyncio.run(_clear(session))
    if json:
        print_json({"cleared": cleared["id"]})
    else:
        print_line("This conversation starts afresh; what was said is archived.")


async def _fetch_threads() -> list[JsonObject]:
    async with CliHubClient.for_home(Home.from_environment()) as client:
        return cast("list[JsonObject]", (await client.get("/threads"))["threads"])


async def _clear(thread_id: str) -> JsonObject:
    async with CliHubClient.for_home(Home.from_environment()) as client:
        return await client.post(f"/threads/{quote(thread_id, safe='')}/clear", {})
