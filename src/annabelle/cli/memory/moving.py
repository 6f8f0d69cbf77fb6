"""Long work on the memory, with its progress shown: `export`, `import` and `embed`."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from annabelle.cli.hub_client import HubClient
from annabelle.cli.memory.answers import Agent, show, structured
from annabelle.cli.options import Json
from annabelle.cli.patience import Patience
from annabelle.cli.tool_calls import call_tool, succeeded, use_tool
from annabelle.core.errors import NotFound
from annabelle.core.home import Home
from annabelle.core.settings import load_settings
from annabelle.core.tools import JsonObject, ToolResult

BATCH = 200


def export(
    format: Annotated[str, typer.Option("--format", "-f", help="markdown to read and edit, or json to keep all.")] = (
        "markdown"
    ),
    no_conversations: Annotated[bool, typer.Option("--no-conversations", help="Leave conversations out.")] = False,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Write what is remembered into files a person can read, edit and import again."""
    with Patience("Writing"):
        written = use_tool(
            "memory_export_memory", format=format, include_conversations=not no_conversations, agent_id=agent
        )
    show(written, json=json)


def import_(
    path: Annotated[Path, typer.Argument(help="A file or folder that `export` made, or JSON lines of facts.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would change.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Retire facts whose lines were removed from the file.")
    ] = False,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Read facts, profile, contacts and projects from files. All of it or nothing; broken off, it goes on."""
    inside = _within_reach(path)
    arguments: JsonObject = {"file_path": str(inside), "dry_run": dry_run, "prune": prune}
    show(_in_batches("Importing", "memory_import_memory", arguments, agent, quiet=json), json=json)


def embed(agent: Agent = None, json: Json = False) -> None:
    """Make the vectors that are missing, so that everything is found by meaning too."""
    show(_in_batches("Embedding", "memory_backfill_embeddings", {}, agent, quiet=json), json=json)


def _in_batches(label: str, tool: str, arguments: JsonObject, agent: str | None, *, quiet: bool) -> ToolResult:
    """Call a tool that does one batch at a time until it is done; killed in between, the next call goes on."""
    asked = {**arguments, "batch_size": BATCH} | ({"agent_id": agent} if agent is not None else {})

    async def work() -> ToolResult:
        with _progress(quiet=quiet) as progress:
            task = progress.add_task(label, total=None)
            async with HubClient.of(Home.from_environment()) as client:
                while True:
                    result = succeeded(await call_tool(client, tool, asked))
                    data = structured(result)
                    progress.update(task, completed=_done(data), total=int(str(data.get("total", 0))))
                    if data.get("finished") is not False and not data.get("remaining"):
                        return result

    return asyncio.run(work())


def _done(data: JsonObject) -> int:
    if "remaining" in data:
        return int(str(data.get("total", 0))) - int(str(data["remaining"]))
    return int(str(data.get("staged", data.get("total", 0))))


def _within_reach(path: Path) -> Path:
    """The memory reads files in its export folder and in the workspace only; others are copied there first."""
    home = Home.from_environment()
    settings = load_settings(home)
    source = path.expanduser().resolve()
    if not source.exists():
        raise NotFound(f"There is no file {path}.")
    exports = (settings.memory_export_path or home.memory_export).resolve()
    if any(source.is_relative_to(place.resolve()) for place in (exports, settings.workspace_path or home.workspace)):
        return source
    copy = exports / "imports" / source.name
    copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if source.is_dir():
        shutil.copytree(source, copy, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, copy)
        copy.chmod(0o600)
    return copy


def _progress(*, quiet: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        disable=quiet or not sys.stderr.isatty(),
        transient=True,
    )
