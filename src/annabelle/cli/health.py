"""`annabelle health run`: looks after the agents now, as happens by itself every five minutes (DIA-05)."""

from __future__ import annotations

from annabelle.cli.hub_client import post_json
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import print_outcome

app = command_app("Look after agents, goals and tasks now.")


@run_by_default(app)
@app.command()
def run(json: Json = False) -> None:
    """End what hangs, try again what waits, and clear away what is over."""
    found = post_json("/health/run", {})
    print_outcome(found, str(found["text"]) or "All is well: nothing hangs, and nothing was to be done.", json=json)
