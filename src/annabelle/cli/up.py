"""`annabelle up`: starts the hub in the background and returns when it is ready."""

from __future__ import annotations

from annabelle.cli.hub_client import HubFile
from annabelle.cli.hub_process import running_hub, start_hub, wait_for_other_hub, wait_until_ready
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import print_outcome
from annabelle.cli.spinner import Spinner
from annabelle.core.errors import AlreadyRunning
from annabelle.core.home import Home

app = command_app()


@app.command()
def up(json: Json = False) -> None:
    """Start Annabelle in the background; it goes on when the terminal closes."""
    home = Home.from_environment()
    note, started = bring_up(home)
    data = {"url": note.url, "pid": note.pid, "version": note.version, "started": started}
    sentence = f"Annabelle {'runs' if started else 'already runs'} at {note.url} (process {note.pid})."
    print_outcome(data, sentence, json=json)


def bring_up(home: Home) -> tuple[HubFile, bool]:
    """The running hub, and whether it was just started."""
    note = running_hub(home)
    if note is not None:
        return note, False
    with Spinner("Starting Annabelle"):
        try:
            return wait_until_ready(home, start_hub(home, die_with_parent=False)), True
        except AlreadyRunning as refusal:
            return wait_for_other_hub(home, refusal), False
