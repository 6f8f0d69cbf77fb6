"""`annabelle status`: shows what runs and its state."""

from __future__ import annotations

from typing import cast

import typer

from annabelle.cli.hub_client import get_json, read_hub_file
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import clean, print_json, print_line, print_paragraph, print_table
from annabelle.core.errors import HubUnreachable
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject

app = command_app()


@app.command()
def status(json: Json = False) -> None:
    """Show what runs and how it is doing. Exit code 5 when nothing runs."""
    home = Home.from_environment()
    try:
        found = get_json("/status")
    except HubUnreachable:
        if json:
            print_json({"running": False})
            raise typer.Exit(HubUnreachable.exit_code) from None
        raise
    if json:
        print_json({"running": True, **found})
        return
    print_status(home, found)


def print_status(home: Home, found: JsonObject) -> None:
    note = read_hub_file(home)
    if note is not None:
        since = _format_uptime(found.get("uptimeSeconds"))
        print_line(f"Annabelle {note.version} runs at {note.url} (process {note.pid}){since}.")
    agents = [
        (
            _field_text(row, "agentId"),
            describe_agent_state(row),
            describe_agent_model(row),
            _pid(row),
            _hour_of(row),
            _calls_of(row),
        )
        for row in _rows(found.get("agents"))
    ]
    servers = [
        (
            _field_text(row, "name"),
            _server_state(row),
            _field_text(row, "tools"),
            _pid(row),
            _field_text(row, "restarts"),
            _describe_trouble(row),
        )
        for row in _rows(found.get("servers"))
    ]
    for titles, rows in (
        (("AGENT", "STATE", "MODEL", "PROCESS", "TOKENS THIS HOUR", "CALLS A MESSAGE"), agents),
        (("SERVER", "STATE", "TOOLS", "PROCESS", "RESTARTS", ""), servers),
    ):
        if rows:
            print_line("")
            print_table(titles, rows)
    notices = _rows(found.get("notices"))
    if notices:
        print_line("")
    for notice in notices:
        print_paragraph(f"· {clean(_field_text(notice, 'text'))}")


def _format_uptime(seconds: object) -> str:
    if not isinstance(seconds, int | float):
        return ""
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size:
            count = int(seconds // size)
            return f", for {count} {unit}{'' if count == 1 else 's'}"
    return ""


def describe_agent_state(agent: JsonObject) -> str:
    """Describe an agent's state. Without a process it is ready, not in trouble."""
    if agent.get("stopped"):
        return "stopped, until: annabelle resume"
    if agent.get("paused"):
        return f"paused: {_field_text(agent, 'pauseReason')}"
    if not agent.get("enabled", True):
        return "switched off"
    if agent.get("flapping"):
        return "keeps failing"
    state, turns = _field_text(agent, "state"), agent.get("turns")
    if state == "stopped":
        return "ready, starts with its next message"
    return f"{state}, answering {turns}" if turns else state


def describe_agent_model(agent: JsonObject) -> str:
    return (
        ":".join(filter(None, [_field_text(agent, "llmProvider"), _field_text(agent, "model")]))
        or "chosen automatically"
    )


def _hour_of(agent: JsonObject) -> str:
    costs = agent.get("costs")
    fields = cast("JsonObject", costs) if isinstance(costs, dict) else {}
    used, cap = fields.get("currentHourTokens"), fields.get("hardCap")
    return f"{used:,} of {cap:,}" if isinstance(used, int) and isinstance(cap, int) else ""


def _calls_of(agent: JsonObject) -> str:
    most = _field_text(agent, "worstCaseModelCalls")
    return f"at most {most}" if most else ""


def _pid(row: JsonObject) -> str:
    return _field_text(row, "pid") or "–"


def _server_state(server: JsonObject) -> str:
    return "incomplete" if server.get("missing") and server.get("available") else _field_text(server, "state")


def _describe_trouble(server: JsonObject) -> str:
    return clean(_field_text(server, "missing") or _field_text(server, "lastError"))


def _rows(value: object) -> list[JsonObject]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("JsonObject", item) for item in items if isinstance(item, dict)]


def _field_text(row: JsonObject, name: str) -> str:
    value = row.get(name)
    return "" if value is None else str(value)
