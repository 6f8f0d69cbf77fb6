"""Calls the memory's tools and prints their answers with command names."""

from __future__ import annotations

import re
import sys
from datetime import datetime
from functools import cache
from typing import Annotated, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from annabelle.cli.hub_client import call_tool_once, get_rows
from annabelle.cli.output import clean, print_json, print_line
from annabelle.core.errors import AnnabelleError, CallerMistake, NotAllowed, NotFound
from annabelle.core.home import Home
from annabelle.core.settings import load_settings
from annabelle.core.tools import JsonObject, ToolResult
from annabelle.core.trust import FactCategory

# The memory's messages name tools for models; people need commands and options.
_COMMAND_WORDS = {
    "list_facts": "annabelle memory list",
    "retrieve_memories": "annabelle memory search",
    "explain_fact": "annabelle memory why",
    "restore_fact": "annabelle memory bring-back",
    "update_fact": "annabelle memory edit",
    "delete_fact": "annabelle memory rm",
    "query_timeline": "annabelle memory timeline",
    "profile_history": "annabelle memory profile history",
    "rollback_profile": "annabelle memory profile rollback",
    "list_changes": "annabelle memory changes",
    "undo_change": "annabelle memory undo",
    "list_backups": "annabelle memory backups",
    "restore_backup": "annabelle memory restore",
    "backfill_embeddings": "annabelle memory embed",
    "import_memory": "annabelle memory import",
    "export_memory": "annabelle memory export",
    "date_from": "SINCE",
    "date_to": "UNTIL",
    "valid_from": "--since",
    "before_id": "--before",
    "agent_id": "--agent",
    "keep_successor": "--keep",
    "query": "What to look for",
}
_NAMES = re.compile(rf"(?<!\w)(?:{'|'.join(_COMMAND_WORDS)})(?!\w)")


def call_memory_tool(tool: str, /, **arguments: object) -> ToolResult:
    """Call a memory tool without arguments that are None. Errors name commands instead of tools."""
    try:
        return call_tool_once(f"memory_{tool}", **arguments)
    except AnnabelleError as error:
        raise translate_error(error) from error


def translate_error(error: AnnabelleError) -> AnnabelleError:
    """Replace tool names in the error with commands."""
    error.message, error.hint = translate_to_commands(error.message), error.hint and translate_to_commands(error.hint)
    return error


def translate_to_commands(text: str) -> str:
    return _NAMES.sub(lambda name: _COMMAND_WORDS[name[0]], text)


def require_agent(agent: str | None) -> None:
    """Raise NotFound for an unknown agent, since a misspelled name would hide what is stored."""
    if agent is None:
        return
    try:
        known = [str(one["agentId"]) for one in get_rows("/agents", "agents")]
    except NotAllowed:
        return  # only the owner may list the agents
    if agent not in known:
        raise NotFound(f"There is no agent {agent!r}.", hint=f"There is {', '.join(known)}.")


def confirm(question: str) -> None:
    """Ask for confirmation and abort without a yes."""
    if "--json" in sys.argv:
        raise CallerMistake("This needs a yes, and a machine can not be asked.", hint="Add --yes.")
    try:
        sure = typer.confirm(question, err=True)
    except typer.Abort:
        sys.stderr.write("\n")
        sure = False
    if not sure:
        sys.stderr.write("Nothing was changed.\n")
        raise typer.Abort


Agent = Annotated[str | None, typer.Option("--agent", help="The memory of this agent instead of the usual one's.")]
OfCategory = Annotated[FactCategory | None, typer.Option("--category", "-c", help="Only facts of this category.")]

_NAME_WIDTH = 18


def structured(result: ToolResult) -> JsonObject:
    return result.structured or {}


def rows_of(result: ToolResult, name: str) -> list[JsonObject]:
    return cast("list[JsonObject]", structured(result).get(name) or [])


def print_answer(result: ToolResult, *, json: bool) -> None:
    if json:
        print_json(structured(result))
    else:
        print_line(clean(result.text))


def print_fields(fields: list[tuple[str, str]]) -> None:
    for name, value in fields:
        print_line(f"{name:<{_NAME_WIDTH}}{value}")


def format_day(value: object) -> str:
    return format_moment(value)[:10]


def format_moment(value: object) -> str:
    """A time to the minute, in the user's time zone."""
    if not value:
        return ""
    return datetime.fromisoformat(str(value)).astimezone(_load_zone()).strftime("%Y-%m-%d %H:%M")


def to_one_line(value: object, most: int = 200) -> str:
    """Foreign text on one line, cleaned for the terminal and shortened."""
    text = " ".join(clean(str(value or "")).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


@cache
def _load_zone() -> ZoneInfo:
    try:
        return ZoneInfo(load_settings(Home.from_environment()).user_timezone)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return ZoneInfo("UTC")  # other code reports the wrong setting
