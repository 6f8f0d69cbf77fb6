"""The way back when the memory's file is damaged: `backups` and `restore`."""

from __future__ import annotations

from typing import Annotated

import typer

from annabelle.cli.memory.answers import show
from annabelle.cli.options import Json
from annabelle.cli.patience import Patience
from annabelle.cli.tool_calls import use_tool


def list_backups(json: Json = False) -> None:
    """List the backups of the memory."""
    show(use_tool("memory_list_backups"), json=json)


def restore(
    name: Annotated[str | None, typer.Argument(help="Name of a backup, as listed; by default the newest.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Put a backup in the place of the memory. What is there now is kept beside it."""
    if not yes:
        typer.confirm(
            f"Put {name or 'the newest backup'} in the place of what is remembered now?", abort=True, err=True
        )
    with Patience("Restoring"):
        restored = use_tool("memory_restore_backup", name=name)
    show(restored, json=json)
