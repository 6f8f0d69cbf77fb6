"""`annabelle version`: prints the version."""

from __future__ import annotations

import platform

from annabelle import __version__
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import print_outcome

app = command_app()


@app.command()
def version(json: Json = False) -> None:
    """Print the version of Annabelle and of the Python it runs on."""
    python = platform.python_version()
    print_outcome({"version": __version__, "python": python}, f"Annabelle {__version__} on Python {python}", json=json)
