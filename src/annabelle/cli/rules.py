"""`annabelle rules`: lists and changes what is asked about, forbidden or allowed."""

from __future__ import annotations

import asyncio
from typing import Annotated, cast
from urllib.parse import quote

import typer

from annabelle.cli.hub_client import CliHubClient
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import clean, print_json, print_paragraph, print_table
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject

RuleId = Annotated[str, typer.Argument(metavar="RULE", help="Id of a rule, as the list shows it.")]
Words = Annotated[str, typer.Argument(help='The rule, as "always ask before deleting mail".')]
Agent = Annotated[str | None, typer.Option("--agent", help="Only for this agent.")]
All = Annotated[bool, typer.Option("--all", help="Those that were revoked, too.")]

_STATES = {"stated": "holds, waits for your yes", "proposed": "waits for your yes", "active": "holds"}

app = command_app("Say what Annabelle must ask about or never do, and see what holds.")


@app.callback(invoke_without_command=True)
def rules(context: typer.Context, json: Json = False) -> None:
    """Say what Annabelle must ask about or never do, and see what holds."""
    if context.invoked_subcommand is None:
        list_rules(json=json)


@app.command("list")
def list_rules(all_rules: All = False, json: Json = False) -> None:
    """List your rules and how they are understood."""
    found = cast("list[JsonObject]", asyncio.run(_get(revoked=all_rules))["rules"])
    if json:
        print_json({"rules": found})
    elif found:
        rows = [
            (str(one["id"]), _STATES.get(str(one["state"]), str(one["state"])), clean(str(one["reading"])))
            for one in found
        ]
        print_table(("RULE", "STATE", "HOW IT IS UNDERSTOOD"), rows)
    else:
        print_paragraph('There are no rules yet. annabelle rules add "always ask before deleting mail" makes one.')


@app.command()
def add(words: Words, agent: Agent = None, json: Json = False) -> None:
    """State a rule; it holds at once."""
    body: JsonObject = {"words": words} if agent is None else {"words": words, "agentId": agent}
    _show(asyncio.run(_post("/rules", body)), "It holds.", json=json)


@app.command()
def confirm(rule_id: RuleId, json: Json = False) -> None:
    """Say yes to a rule that was noticed or proposed."""
    _show(asyncio.run(_post(f"/rules/{quote(rule_id, safe='')}/confirm", {})), "It holds.", json=json)


@app.command()
def revoke(rule_id: RuleId, json: Json = False) -> None:
    """End a rule, or drop one that was only noticed or proposed."""
    _show(asyncio.run(_post(f"/rules/{quote(rule_id, safe='')}/revoke", {})), "It holds no more.", json=json)


def _show(rule: JsonObject, outcome: str, *, json: bool) -> None:
    if json:
        print_json(rule)
    else:
        print_paragraph(f"{rule['id']}: {clean(str(rule['reading']))} {outcome}")


async def _get(*, revoked: bool) -> JsonObject:
    async with CliHubClient.for_home(Home.from_environment()) as client:
        return await client.get("/rules", revoked=str(revoked).lower())


async def _post(path: str, body: JsonObject) -> JsonObject:
    async with CliHubClient.for_home(Home.from_environment()) as client:
        return await client.post(path, body)
