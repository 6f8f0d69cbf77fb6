"""`annabelle restore`: everything back from one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from annabelle.cli.backup import PassphraseFile, read_passphrase
from annabelle.cli.models import make_progress
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import clean, print_outcome
from annabelle.core.home import Home
from annabelle.store.home_archive import open_archive
from annabelle.store.home_restore import restore_home

app = command_app()


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="File that annabelle backup wrote.")],
    passphrase_file: PassphraseFile = None,
    without_secrets: Annotated[
        bool, typer.Option("--without-secrets", help="Leave out keys, tokens and accounts; needs no passphrase.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also where there is a home already; it is moved aside.")
    ] = False,
    json: Json = False,
) -> None:
    """Put a backup in the place of the home, on this machine or another. Annabelle must not run.

    The file is checked first: either all of it is restored or nothing changes.
    """
    file = file.expanduser()
    with open_archive(file, secrets=False) as archive:
        asks = archive.manifest.salt is not None and not without_secrets
    passphrase = read_passphrase(passphrase_file, "Passphrase of the backup") if asks else None
    with make_progress(quiet=json) as progress:
        task = progress.add_task("Restoring", total=None)
        report = restore_home(
            Home.from_environment(),
            file,
            passphrase=passphrase,
            secrets=not without_secrets,
            force=force,
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    sentences = [f"Restored {report.home} as it was on {report.made_at[:16].replace('T', ' at ')} UTC."]
    if report.secrets is None:
        sentences.append("Keys, tokens, accounts and the audit were not restored.")
    if report.replaced:
        sentences.append(f"What was there before is kept in {' and '.join(report.replaced)}.")
    sentences.append("Start it with annabelle up.")
    print_outcome(report, clean(" ".join(sentences)), json=json)
