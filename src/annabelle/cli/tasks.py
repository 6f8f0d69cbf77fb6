"""`annabelle tasks`: lists work that agents handed to subagents or to the background."""

from __future__ import annotations

from annabelle.cli.hub_client import get_rows
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import clean, print_rows
from annabelle.core.tools import JsonObject

app = command_app()
_KINDS = {"subagent": "subagent", "tool_call": "tool call"}


@app.command()
def tasks(json: Json = False) -> None:
    """List the work that agents handed on, newest first."""
    found = get_rows("/tasks", "tasks")
    rows = [_row(task) for task in found]
    empty = "Nothing was handed on yet: neither to a subagent nor to the background."
    print_rows({"tasks": found}, ("TASK", "KIND", "STATE", "SINCE", "NAME"), rows, empty, json=json)


def _row(task: JsonObject) -> tuple[str, ...]:
    kind = _KINDS.get(str(task["kind"]), str(task["kind"]))
    since = str(task["createdAt"])[:16]
    return str(task["taskId"]), kind, str(task["state"]), since, clean(str(task["name"]))
