"""`annabelle down`: stops the background hub."""

from __future__ import annotations

from annabelle.cli.hub_process import EXTRA_SECONDS, stop_hub
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import print_outcome
from annabelle.cli.spinner import Spinner
from annabelle.core.home import Home
from annabelle.core.settings import load_settings

app = command_app()


@app.command()
def down(json: Json = False) -> None:
    """Stop Annabelle. Answers in the middle of being made are finished, now or after the next start."""
    stopped = bring_down(Home.from_environment())
    sentence = "Annabelle has stopped." if stopped else "Annabelle was not running."
    print_outcome({"stopped": stopped}, sentence, json=json)


def bring_down(home: Home) -> bool:
    """Stop the hub of this home; False if none ran."""
    with Spinner("Stopping Annabelle"):
        return stop_hub(home, load_settings(home).annabelle_shutdown_grace_seconds + EXTRA_SECONDS)
