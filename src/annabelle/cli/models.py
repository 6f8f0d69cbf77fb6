"""`annabelle models`: shows which model answers and the alternatives, and downloads models."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from annabelle.cli.hub_process import running_hub
from annabelle.cli.hub_settings import read_hub_settings
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import print_json, print_line, print_outcome, print_paragraph, print_table
from annabelle.core.home import Home
from annabelle.core.settings import Settings, load_settings
from annabelle.core.settings_file import SettingsFile
from annabelle.llm.gguf_models import GgufModel, GgufRegistry, download_model as fetch
from annabelle.llm.model_catalogue import build_model, describe_model, list_options, settings_for

app = command_app("List, fetch and choose models.")


@run_by_default(app)
@app.command("list")
def list_models(json: Json = False) -> None:
    """Show which model answers and why, and the ones that could."""
    home = Home.from_environment()
    settings, registry = load_settings(home), GgufRegistry(home)
    answering, later = _describe_answering(home, settings)
    rows = [(one.name, one.kind, one.state_text, one.note) for one in list_options(settings, registry)]
    if json:
        print_json(
            {
                "answering": answering,
                "after_restart": later,
                "models": [dict(zip(("name", "kind", "state", "note"), row, strict=True)) for row in rows],
            }
        )
        return
    print_paragraph(answering)
    if later is not None:
        print_paragraph(f"After `annabelle restart`: {later}")
    print_line("")
    print_table(("MODEL", "KIND", "STATE", "NOTE"), rows)


@app.command()
def pull(
    name: Annotated[str, typer.Argument(help="Name of a model, as `models list` shows it, or a new name with --url.")],
    url: Annotated[str | None, typer.Option(help="Address of a GGUF file that is not in the list.")] = None,
    sha256: Annotated[str | None, typer.Option(help="Its checksum, if its server does not state one.")] = None,
    json: Json = False,
) -> None:
    """Fetch a model for the embedded engine. A broken download goes on where it stopped; the checksum is verified."""
    home = Home.from_environment().prepare()
    registry = GgufRegistry(home)
    if url is not None:
        registry.remember(build_model(name, url, sha256))
    path = download(registry, registry.find(name), quiet=json)
    data = {"name": name, "path": str(path), "bytes": path.stat().st_size}
    print_outcome(data, f"{name} is in {path}. To let it answer: annabelle models use {name}", json=json)


@app.command()
def use(
    name: Annotated[
        str, typer.Argument(help="A fetched model, a provider (groq, ollama, …), provider:model, or auto.")
    ],
    json: Json = False,
) -> None:
    """Choose the model that answers. `auto` lets Annabelle choose again."""
    home = Home.from_environment().prepare()
    SettingsFile(home.settings_file).change(settings_for(name, GgufRegistry(home)))
    answering = asyncio.run(describe_model(home, load_settings(home)))
    running = running_hub(home) is not None
    if json:
        print_json({"answering": answering, "restart_needed": running})
        return
    print_paragraph(answering)
    if running:
        print_line("It counts from the next start: annabelle restart")


def _describe_answering(home: Home, settings: Settings) -> tuple[str, str | None]:
    """Which model answers now, and which would after a restart if it differs."""
    by_settings = asyncio.run(describe_model(home, settings))
    note = running_hub(home)
    if note is None:
        return by_settings, None
    theirs = read_hub_settings(home, note)
    if theirs is None:
        return "Annabelle runs with settings of an earlier start.", by_settings
    now = asyncio.run(describe_model(home, theirs))
    return now, by_settings if by_settings != now else None


def download(registry: GgufRegistry, model: GgufModel, *, quiet: bool) -> Path:
    """Fetch a model with a progress bar."""
    with make_progress(quiet=quiet) as progress:
        task = progress.add_task(model.name, total=model.size)
        return asyncio.run(
            fetch(registry, model, lambda done, total: progress.update(task, completed=done, total=total))
        )


def make_progress(*, quiet: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        disable=quiet or not sys.stderr.isatty(),
    )
