"""`annabelle restart`: stops and starts the hub."""

from __future__ import annotations

from annabelle.cli.down import bring_down
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import print_outcome
from annabelle.cli.up import bring_up
from annabelle.core.home import Home

app = command_app()


@app.command()
def restart(json: Json = False) -> None:
    """Stop Annabelle if it runs, and start it in the background with the settings of now."""
    home = Home.from_environment()
    was_running = bring_down(home)
    note, _ = bring_up(home)
    data = {"url": note.url, "pid": note.pid, "version": note.version, "was_running": was_running}
    print_outcome(data, f"Annabelle runs at {note.url} (process {note.pid}).", json=json)
