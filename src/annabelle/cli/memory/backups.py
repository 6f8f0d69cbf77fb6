"""The way back when the memory's file is damaged: `backups` and `restore`."""

from __future__ import annotations

from typing import Annotated

import typer

from annabelle.cli.memory.answers import moment, rows_of, show, size, structured
from annabelle.cli.memory.asking import ask, confirm
from annabelle.cli.options import Json
from annabelle.cli.output import print_json, print_table
from annabelle.cli.patience import Patience


def list_backups(json: Json = False) -> None:
    """List the backups of the memory, newest first."""
    found = ask("list_backups")
    rows = rows_of(found, "backups")
    if json:
        print_json(structured(found))
    elif rows:
        print_table(
            ("BACKUP", "MADE", "SIZE"),
            [(str(row["name"]), moment(row["made_at"]), size(row["size_bytes"])) for row in rows],
        )
    else:
        show(found, json=False)


def restore(
    name: Annotated[str | None, typer.Argument(help="Name of a backup, as listed; by default the newest.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Put a backup in the place of the memory. What is there now is kept beside it."""
    if not yes:
        confirm(f"Put {name or 'the newest backup'} in the place of what is remembered now?")
    with Patience("Restoring"):
        restored = ask("restore_backup", name=name)
    show(restored, json=json)
