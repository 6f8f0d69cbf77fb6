"""`annabelle memory profile`: shows and edits what an agent knows of its user and itself."""

from __future__ import annotations

import json as json_text
from collections.abc import Iterator
from typing import Annotated, cast

import typer

from annabelle.cli.memory.client import (
    Agent,
    call_memory_tool,
    format_moment,
    print_fields,
    require_agent,
    rows_of,
    structured,
    to_one_line,
)
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import print_json, print_line, print_rows
from annabelle.cli.terminal_input import edit_text
from annabelle.core.errors import CallerMistake
from annabelle.core.tools import JsonObject, ToolResult

app = command_app("Show and change the profile: what matters about you, and who the agent is.")


@app.callback(invoke_without_command=True)
def profile(context: typer.Context, agent: Agent = None, json: Json = False) -> None:
    """Show and change the profile: what matters about you, and who the agent is."""
    if context.invoked_subcommand is None:
        _print_profile(call_memory_tool("get_profile", agent_id=agent), json=json)


@app.command("set")
def set_field(
    field: Annotated[str, typer.Argument(help="As in user.city, persona.tone or persona.system_prompt.")],
    value: Annotated[str, typer.Argument(help="Text, or JSON for anything else.")],
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Set one field; it counts from the next message on."""
    _update(_nested(field, _parse_value(value)), agent, json=json)


@app.command()
def unset(
    field: Annotated[str, typer.Argument(help="As in user.city.")], agent: Agent = None, json: Json = False
) -> None:
    """Remove one field."""
    _update(_nested(field, None), agent, json=json)


@app.command()
def edit(agent: Agent = None, json: Json = False) -> None:
    """Open the whole profile in your editor."""
    held = structured(call_memory_tool("get_profile", agent_id=agent))
    before = cast("JsonObject", held.get("profile") or {"user": {}, "persona": {}})
    text = edit_text(json_text.dumps(before, indent=2, ensure_ascii=False) + "\n", ".json")
    try:
        after: object = json_text.loads(text)
    except json_text.JSONDecodeError as error:
        raise CallerMistake(
            f"That is not valid JSON: {error.msg} in line {error.lineno}. Nothing was changed."
        ) from error
    if not isinstance(after, dict):
        raise CallerMistake("The profile is a JSON object with the sections user and persona. Nothing was changed.")
    _update(_diff_profiles(before, cast("JsonObject", after)), agent, json=json)


@app.command()
def history(agent: Agent = None, json: Json = False) -> None:
    """List the versions of the profile, newest first."""
    found = call_memory_tool("profile_history", agent_id=agent)
    rows = [
        (
            str(row["version"]),
            format_moment(row["changed_at"]),
            to_one_line(", ".join(str(name) for name in cast("list[object]", row["changed"])), 60),
            to_one_line(row["reason"]),
        )
        for row in rows_of(found, "versions")
    ]
    titles = ("VERSION", "WHEN", "CHANGED", "WHY")
    print_rows(structured(found), titles, rows, "The profile was never changed.", json=json)


@app.command()
def rollback(
    version: Annotated[int, typer.Argument(min=0, help="A version of the history; 0 is the empty profile.")],
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Make the profile read as it did at an earlier version; this can be undone the same way."""
    _print_change(call_memory_tool("rollback_profile", version=version, agent_id=agent), json=json)


def _update(updates: JsonObject, agent: str | None, *, json: bool) -> None:
    require_agent(agent)
    _print_change(
        call_memory_tool("update_profile", updates=updates, reason="changed in the terminal", agent_id=agent), json=json
    )


def _print_profile(found: ToolResult, *, json: bool) -> None:
    held = structured(found)
    if json:
        print_json(held)
        return
    fields = list(_walk_fields(cast("JsonObject", held["profile"])))
    if not fields:
        print_line("The profile is empty. To begin it: annabelle memory profile set user.city Lisbon")
        return
    foreign = set(cast("list[str]", held["untrusted_fields"]))
    print_fields(
        [(name, f"{value} (untrusted)" if name in foreign else value) for name, value in fields]
        + [("version", f"{held['version']}, {format_moment(held['updated_at'])}")]
    )


def _print_change(done: ToolResult, *, json: bool) -> None:
    data = structured(done)
    if json:
        print_json(data)
        return
    changed = ", ".join(to_one_line(name) for name in cast("list[str]", data["changed"]))
    if not changed:
        print_line("Nothing to change: the profile says so already.")
        return
    before = int(str(data["version"])) - 1
    print_line(f"Changed {changed}. To undo it: annabelle memory profile rollback {before}")


def _walk_fields(section: JsonObject, path: str = "") -> Iterator[tuple[str, str]]:
    for name, value in section.items():
        if isinstance(value, dict):
            yield from _walk_fields(cast("JsonObject", value), f"{path}{name}.")
        elif isinstance(value, list):
            yield f"{path}{name}", to_one_line(", ".join(str(one) for one in cast("list[object]", value)), 2000)
        else:
            yield f"{path}{name}", to_one_line(value, 2000)


def _nested(field: str, value: object) -> JsonObject:
    names = field.split(".")
    if len(names) < 2 or not all(names):
        raise CallerMistake(f"{field!r} names no field.", hint="Name a section and a field, as in user.city")
    for name in reversed(names):
        value = {name: value}
    return cast("JsonObject", value)


def _parse_value(text: str) -> object:
    if text[:1] not in "[{":
        return text
    try:
        return cast("object", json_text.loads(text))
    except json_text.JSONDecodeError:
        return text


def _diff_profiles(before: JsonObject, after: JsonObject) -> JsonObject:
    """A merge patch from one profile to the other: changed fields, and null for removed ones."""
    changes: JsonObject = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            inner = _diff_profiles(cast("JsonObject", old), cast("JsonObject", value))
            if inner:
                changes[name] = inner
        elif old != value:
            changes[name] = value
    return changes
