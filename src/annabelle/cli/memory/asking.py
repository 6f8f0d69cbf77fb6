"""Asking the memory from the terminal: its tools, and what it says of them in the words of commands."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import cast

import typer

from annabelle.cli.hub_client import HubClient
from annabelle.cli.tool_calls import use_tool
from annabelle.core.errors import AnnabelleError, CallerMistake, NotAllowed, NotFound
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject, ToolResult

# The memory speaks to models, which know its tools; a person has commands and their arguments.
_WORDS = {
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
_NAMES = re.compile(rf"(?<!\w)(?:{'|'.join(_WORDS)})(?!\w)")


def ask(tool: str, /, **arguments: object) -> ToolResult:
    """One call of a memory's tool; what is None is left out. An error is told with what to type."""
    try:
        return use_tool(f"memory_{tool}", **arguments)
    except AnnabelleError as error:
        raise for_people(error) from error


def for_people(error: AnnabelleError) -> AnnabelleError:
    """The same error with commands in the place of tools."""
    error.message, error.hint = in_commands(error.message), error.hint and in_commands(error.hint)
    return error


def in_commands(text: str) -> str:
    """A sentence about tools as one about commands."""
    return _NAMES.sub(lambda name: _WORDS[name[0]], text)


def require_agent(agent: str | None) -> None:
    """Nothing is put into the memory of an agent there is not: a misspelled name would hide it."""
    if agent is None:
        return

    async def names() -> list[str]:
        async with HubClient.of(Home.from_environment()) as client:
            found = cast("list[JsonObject]", (await client.get("/agents"))["agents"])
            return [str(one["agentId"]) for one in found]

    try:
        known = asyncio.run(names())
    except NotAllowed:
        return  # whoever is not the owner is not told which agents there are
    if agent not in known:
        raise NotFound(f"There is no agent {agent!r}.", hint=f"There is {', '.join(known)}.")


def confirm(question: str) -> None:
    """Ask before something is done; without a yes nothing is, and that is said."""
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
