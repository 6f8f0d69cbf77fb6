"""`annabelle version`: prints the version."""

from __future__ import annotations

import platform

from annabelle import __version__
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import print_json, print_line

app = command_app()


@app.command()
def version(json: Json = False) -> None:
    """Print the version of Annabelle and of the Python it runs on."""
    if json:
        print_json({"version": __version__, "python": platform.python_version()})
    else:
        print_line(f"Annabelle {__version__} on Python {platform.python_version()}")
