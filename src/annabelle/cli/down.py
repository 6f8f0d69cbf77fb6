"""`annabelle down`: stops the background hub."""

from __future__ import annotations

from annabelle.cli.hub_process import stop_hub
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import print_json, print_line
from annabelle.cli.spinner import Spinner
from annabelle.core.home import Home
from annabelle.core.settings import load_settings

EXTRA_SECONDS = 10.0

app = command_app()


@app.command()
def down(json: Json = False) -> None:
    """Stop Annabelle. Answers in the middle of being made are finished, now or after the next start."""
    stopped = bring_down(Home.from_environment())
    if json:
        print_json({"stopped": stopped})
    else:
        print_line("Annabelle has stopped." if stopped else "Annabelle was not running.")


def bring_down(home: Home) -> bool:
    """Stop the hub of this home; False if none ran."""
    with Spinner("Stopping Annabelle"):
        return stop_hub(home, load_settings(home).annabelle_shutdown_grace_seconds + EXTRA_SECONDS)
