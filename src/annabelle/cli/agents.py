"""`annabelle agents`: lists the agents and shows one of them in full (DIA-05)."""

from __future__ import annotations

from typing import Annotated, cast
from urllib.parse import quote

import typer

from annabelle.cli.hub_client import get_json, get_rows
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import clean, print_json, print_line, print_rows, print_table
from annabelle.cli.status import describe_agent_model, describe_agent_state
from annabelle.core.tools import JsonObject

AgentName = Annotated[str, typer.Argument(metavar="ID", help="Id of the agent, as annabelle agents lists it.")]
Last = Annotated[int, typer.Option("-n", "--last", min=1, max=200, help="How many of its newest turns.")]

app = command_app("List the agents, or show one: what it does, what it did and what it spent.")


@run_by_default(app)
@app.command("list")
def list_agents(json: Json = False) -> None:
    """List the agents."""
    found = get_rows("/agents", "agents")
    rows = [
        (
            str(one["agentId"]),
            clean(describe_agent_state(one)),
            clean(describe_agent_model(one)),
            str(one["restartCount"]),
        )
        for one in found
    ]
    print_rows({"agents": found}, ("AGENT", "STATE", "MODEL", "RESTARTS"), rows, "There is no agent.", json=json)


@app.command()
def show(agent: AgentName, last: Last = 10, json: Json = False) -> None:
    """Show one agent: its state, what holds it back, what it spent today, and its newest turns."""
    found = get_json(f"/agents/{quote(agent, safe='')}", last=last)
    if json:
        print_json(found)
        return
    print_table(("", ""), _describe(found))
    turns = cast("list[JsonObject]", found["turns"])
    print_line("")
    rows = [
        (_moment(turn["createdAt"]), str(turn["state"]), clean(str(turn["channel"])), clean(str(turn["text"])))
        for turn in turns
    ]
    if rows:
        print_table(("TIME", "TURN", "CHANNEL", "MESSAGE"), rows)
    else:
        print_line("Nobody has written to it yet.")


def _describe(found: JsonObject) -> list[tuple[str, str]]:
    agent = cast("JsonObject", found["agent"])
    costs = cast("JsonObject", agent["costs"])
    lines = [
        ("agent", str(agent["agentId"])),
        ("state", describe_agent_state(agent)),
        ("model", describe_agent_model(agent)),
        ("process", "none" if agent["pid"] is None else f"{agent['pid']} at port {agent['port']}"),
        ("turns now", str(agent["turns"])),
        *(("running", _describe_lock(lock)) for lock in cast("list[JsonObject]", found["running"])),
        ("restarts", f"{agent['restartCount']}{', keeps dying' if agent['flapping'] else ''}"),
        ("last active", _moment(agent["lastActivityAt"]) if agent["lastActivityAt"] else "not since Annabelle started"),
        ("costs today", f"${found['costTodayUsd']:.4f} for {found['callsToday']} calls"),
        ("tokens this hour", f"{costs['currentHourTokens']:,} of {costs['hardCap']:,}"),
    ]
    if isinstance(found["halt"], dict):
        halt = cast("JsonObject", found["halt"])
        what = "with everything" if halt["everything"] else "alone"
        lines.append(("stopped", f"{what}, at {_moment(halt['at'])} by {halt['by']}"))
    if agent["paused"] and agent["pausedAt"]:
        lines.append(("paused at", _moment(agent["pausedAt"])))
    if found["backgroundPause"]:
        lines.append(("background", f"paused: {found['backgroundPause']}"))
    return [(name, clean(text)) for name, text in lines]


def _describe_lock(lock: JsonObject) -> str:
    what = f" ({lock['type']})" if lock["type"] else ""
    return f"{lock['messageId']}{what} since {_moment(lock['since'])}, held by {lock['owner']}"


def _moment(text: object) -> str:
    return str(text)[:19].replace("T", " ")
