"""Memory commands for bulk data, with progress: `export`, `import` and `embed`."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from annabelle.cli.hub_client import CliHubClient, call_tool, raise_if_failed
from annabelle.cli.memory.client import (
    Agent,
    call_memory_tool,
    print_answer,
    require_agent,
    structured,
    translate_error,
)
from annabelle.cli.options import Json
from annabelle.cli.spinner import Spinner
from annabelle.core.errors import AnnabelleError, CallerMistake, NotFound, OperatorMistake, TooLarge, TooManyRequests
from annabelle.core.home import Home
from annabelle.core.settings import load_settings
from annabelle.core.tools import JsonObject, ToolResult

PAGES = ("profile.md", "facts.md", "contacts.md", "projects.md", "memory.json")
"""The files that make up an export; only these are imported from a folder."""

MAX_BYTES = 200_000_000


@contextmanager
def reachable_copy(path: Path) -> Generator[Path]:
    """Yield the path if the memory server can read it, otherwise a temporary copy."""
    home = Home.from_environment()
    settings = load_settings(home)
    source = path.expanduser().resolve()
    if not source.exists():
        raise NotFound(f"There is no file {path}.")
    if not source.is_dir() and not source.is_file():
        raise CallerMistake(f"{path} is not a file.")
    exports = (settings.memory_export_path or home.memory_export).resolve()
    workspace = (settings.workspace_path or home.workspace).resolve()
    if source == exports:
        source = _only_export(exports)
    if source.is_relative_to(workspace) or _is_export(source, exports):
        yield source
        return
    try:
        exports.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix="import-", dir=exports) as folder:
            yield _copy_export(source, Path(folder))
    except OSError as error:
        raise OperatorMistake(f"{error.filename or path} can not be copied: {error.strerror}.") from error


def _is_export(source: Path, exports: Path) -> bool:
    """Whether it is a folder directly in the export folder, or a file in one."""
    return source.parent == exports if source.is_dir() else source.parent.parent == exports


def _only_export(exports: Path) -> Path:
    found = sorted(folder for folder in exports.iterdir() if folder.is_dir() and any(_pages_of(folder)))
    if len(found) != 1:
        names = ", ".join(str(folder) for folder in found)
        raise CallerMistake(
            f"There {'are several exports' if found else 'is no export'} in {exports}.",
            hint=f"Name one: {names}" if found else "Make one: annabelle memory export",
        )
    return found[0]


def _copy_export(source: Path, folder: Path) -> Path:
    if not source.is_dir():
        if source.stat().st_size > MAX_BYTES:
            raise TooLarge(f"{source.name} is too large; files up to {MAX_BYTES // 1_000_000} MB are imported.")
        return Path(shutil.copyfile(source, folder / source.name))
    pages = list(_pages_of(source))
    if not pages:
        raise NotFound(f"There is nothing to import in {source}.", hint=f"Looked for {', '.join(PAGES)}.")
    for page in pages:
        shutil.copyfile(page, folder / page.name)
    return folder


def _pages_of(folder: Path) -> Iterable[Path]:
    return (folder / name for name in PAGES if (folder / name).is_file())


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
    with Spinner("Writing"):
        written = call_memory_tool(
            "export_memory", format=format, include_conversations=not no_conversations, agent_id=agent
        )
    print_answer(written, json=json)


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
    with reachable_copy(path) as reachable:
        arguments: JsonObject = {"file_path": str(reachable), "dry_run": dry_run, "prune": prune}
        if dry_run:
            done = call_memory_tool("import_memory", **arguments, agent_id=agent)
        else:
            done = _run_in_batches("Importing", "import_memory", arguments | {"batch_size": IMPORT_BATCH}, agent)
    print_answer(done, json=json)


def embed(agent: Agent = None, json: Json = False) -> None:
    """Make the vectors that are missing, so that everything is found by meaning too."""
    print_answer(_run_in_batches("Embedding", "backfill_embeddings", {"batch_size": EMBED_BATCH}, agent), json=json)


def _run_in_batches(label: str, tool: str, arguments: JsonObject, agent: str | None) -> ToolResult:
    """Call a tool batch by batch until it is done. After an interruption, the next call continues."""
    asked = arguments | ({"agent_id": agent} if agent is not None else {})

    async def call_until_done() -> ToolResult:
        with _make_progress() as progress:
            task = progress.add_task(label, total=None)
            async with CliHubClient.for_home(Home.from_environment()) as client:
                while True:
                    try:
                        result = raise_if_failed(await call_tool(client, f"memory_{tool}", asked))
                    except TooManyRequests:
                        await asyncio.sleep(_BREATH_SECONDS)
                        continue
                    data = structured(result)
                    progress.update(
                        task, completed=_count_done(data), total=int(str(data.get("total", 0))), refresh=True
                    )
                    over = data.get("finished") is not False and not data.get("remaining")
                    if over or data.get("done") == 0:  # a batch without progress would repeat forever
                        return result

    try:
        return asyncio.run(call_until_done())
    except AnnabelleError as error:
        raise translate_error(error) from error
    except KeyboardInterrupt:
        sys.stderr.write("Broken off. The same command goes on with it.\n")
        raise


def _count_done(data: JsonObject) -> int:
    if "remaining" in data:
        return int(str(data.get("total", 0))) - int(str(data["remaining"]))
    return int(str(data.get("staged", data.get("total", 0))))


def _make_progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        disable="--json" in sys.argv or not sys.stderr.isatty(),
        transient=True,
    )
