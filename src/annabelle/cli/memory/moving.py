"""Long work on the memory, with its progress shown: `export`, `import` and `embed`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from annabelle.cli.hub_client import HubClient
from annabelle.cli.memory.answers import Agent, show, structured
from annabelle.cli.memory.asking import ask, for_people, require_agent
from annabelle.cli.memory.reaching import within_reach
from annabelle.cli.options import Json
from annabelle.cli.patience import Patience
from annabelle.cli.tool_calls import call_tool, succeeded
from annabelle.core.errors import AnnabelleError, TooManyRequests
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject, ToolResult

IMPORT_BATCH = 500
EMBED_BATCH = 200
_BREATH_SECONDS = 1.0


def export(
    format: Annotated[
        Literal["markdown", "json"],
        typer.Option("--format", "-f", help="markdown to read and edit, or json to keep all."),
    ] = "markdown",
    no_conversations: Annotated[bool, typer.Option("--no-conversations", help="Leave conversations out.")] = False,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Write what is remembered into files a person can read, edit and import again."""
    with Patience("Writing"):
        written = ask("export_memory", format=format, include_conversations=not no_conversations, agent_id=agent)
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
    require_agent(agent)
    with within_reach(path) as reachable:
        arguments: JsonObject = {"file_path": str(reachable), "dry_run": dry_run, "prune": prune}
        if dry_run:
            done = ask("import_memory", **arguments, agent_id=agent)
        else:
            done = _in_batches("Importing", "import_memory", arguments | {"batch_size": IMPORT_BATCH}, agent)
    show(done, json=json)


def embed(agent: Agent = None, json: Json = False) -> None:
    """Make the vectors that are missing, so that everything is found by meaning too."""
    show(_in_batches("Embedding", "backfill_embeddings", {"batch_size": EMBED_BATCH}, agent), json=json)


def _in_batches(label: str, tool: str, arguments: JsonObject, agent: str | None) -> ToolResult:
    """Call a tool that does one batch at a time until it is done; killed in between, the next call goes on."""
    asked = arguments | ({"agent_id": agent} if agent is not None else {})

    async def work() -> ToolResult:
        with _progress() as progress:
            task = progress.add_task(label, total=None)
            async with HubClient.of(Home.from_environment()) as client:
                while True:
                    try:
                        result = succeeded(await call_tool(client, f"memory_{tool}", asked))
                    except TooManyRequests:
                        await asyncio.sleep(_BREATH_SECONDS)
                        continue
                    data = structured(result)
                    progress.update(task, completed=_done(data), total=int(str(data.get("total", 0))), refresh=True)
                    over = data.get("finished") is not False and not data.get("remaining")
                    if over or data.get("done") == 0:  # a batch that got nowhere would do so for ever
                        return result

    try:
        return asyncio.run(work())
    except AnnabelleError as error:
        raise for_people(error) from error
    except KeyboardInterrupt:
        sys.stderr.write("Broken off. The same command goes on with it.\n")
        raise


def _done(data: JsonObject) -> int:
    if "remaining" in data:
        return int(str(data.get("total", 0))) - int(str(data["remaining"]))
    return int(str(data.get("staged", data.get("total", 0))))


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        disable="--json" in sys.argv or not sys.stderr.isatty(),
        transient=True,
    )
