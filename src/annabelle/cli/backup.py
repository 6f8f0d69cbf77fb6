"""`annabelle backup`: everything in one file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from annabelle.cli.models import make_progress
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import clean, print_outcome
from annabelle.core.errors import OperatorMistake, explain_os_error
from annabelle.core.home import Home
from annabelle.core.result_text import format_size
from annabelle.core.settings import load_settings
from annabelle.store.home_backup import back_up_home

PASSPHRASE_VARIABLE = "ANNABELLE_BACKUP_PASSPHRASE"  # noqa: S105  a name

PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file", help=f"File whose first line is the passphrase; else {PASSPHRASE_VARIABLE} or a question."
    ),
]

app = command_app()


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="File to write.")],
    passphrase_file: PassphraseFile = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there already.")] = False,
    json: Json = False,
) -> None:
    """Back up everything in one file, also while Annabelle runs: conversations, memory, skills, settings, your files.

    Models, caches and logs are not in it. Keys, tokens and accounts are in it only with a passphrase, encrypted.
    """
    home = Home.from_environment()
    passphrase = read_passphrase(passphrase_file, "Passphrase for keys and accounts (empty: leave them out)", new=True)
    with make_progress(quiet=json) as progress:
        task = progress.add_task("Backing up", total=None)
        report = back_up_home(
            home,
            file,
            load_settings(home),
            passphrase=passphrase,
            force=force,
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    sentences = [f"Backed up to {report.file} ({format_size(report.size_bytes)})."]
    if report.secrets is None:
        sentences.append("Keys, tokens, accounts and the audit are not in it, because there was no passphrase.")
    if report.left_out:
        sentences.append(f"Not in it: {', '.join(report.left_out)}.")
    print_outcome(report, clean(" ".join(sentences)), json=json)


def read_passphrase(file: Path | None, question: str, *, new: bool = False) -> str | None:
    """The passphrase from the file, the environment or the person; None if there is none."""
    if file is not None:
        with explain_os_error(OperatorMistake, f"{file} can not be read"):
            lines = file.expanduser().read_text(encoding="utf-8", errors="backslashreplace").splitlines()
        if not lines or not lines[0]:
            raise OperatorMistake(f"{file} is empty.", hint="Its first line must be the passphrase.")
        return lines[0]
    if PASSPHRASE_VARIABLE in os.environ or not sys.stdin.isatty() or "--json" in sys.argv:
        return os.environ.get(PASSPHRASE_VARIABLE) or None
    told = typer.prompt(question, default="", hide_input=True, show_default=False, err=True)
    if new and told and told != typer.prompt("Again", default="", hide_input=True, show_default=False, err=True):
        raise OperatorMistake("The two are not the same.", hint="Nothing was written.")
    return told or None
