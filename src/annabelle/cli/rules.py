"""`annabelle rules`: lists and changes what is asked about, forbidden or allowed."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from annabelle.cli.hub_client import get_rows, post_json
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import clean, print_outcome, print_rows
from annabelle.core.tools import JsonObject

RuleId = Annotated[str, typer.Argument(metavar="RULE", help="Id of a rule, as the list shows it.")]
Words = Annotated[str, typer.Argument(help='The rule, as "always ask before deleting mail".')]
Agent = Annotated[str | None, typer.Option("--agent", help="Only for this agent.")]
All = Annotated[bool, typer.Option("--all", help="Those that were revoked, too.")]

_STATES = {"stated": "asks, waits for your yes", "proposed": "waits for your yes", "active": "holds"}

app = command_app("Say what Annabelle must ask about or never do, and see what holds.")


@run_by_default(app)
@app.command("list")
def list_rules(all_rules: All = False, json: Json = False) -> None:
    """List your rules and how they are understood."""
    found = get_rows("/rules", "rules", revoked=str(all_rules).lower())
    rows = [
        (str(one["id"]), _STATES.get(str(one["state"]), str(one["state"])), clean(str(one["reading"]))) for one in found
    ]
    empty = 'There are no rules yet. annabelle rules add "always ask before deleting mail" makes one.'
    print_rows({"rules": found}, ("RULE", "STATE", "HOW IT IS UNDERSTOOD"), rows, empty, json=json)


@app.command()
def add(words: Words, agent: Agent = None, json: Json = False) -> None:
    """State a rule; it holds at once."""
    body: JsonObject = {"words": words} if agent is None else {"words": words, "agentId": agent}
    _change("", body, "It holds.", json=json)


@app.command()
def confirm(rule_id: RuleId, json: Json = False) -> None:
    """Say yes to a rule that was noticed or proposed."""
    outcome = f"It holds. To end it: annabelle rules revoke {rule_id}"
    _change(f"/{quote(rule_id, safe='')}/confirm", {}, outcome, json=json)


@app.command()
def revoke(rule_id: RuleId, json: Json = False) -> None:
    """End a rule, or drop one that was only noticed or proposed."""
    _change(f"/{quote(rule_id, safe='')}/revoke", {}, "It holds no more.", json=json)


def _change(path: str, body: JsonObject, outcome: str, *, json: bool) -> None:
    rule = post_json(f"/rules{path}", body)
    print_outcome(rule, f"{rule['id']}: {clean(str(rule['reading']))} {outcome}", json=json)
