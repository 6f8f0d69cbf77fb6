"""`annabelle open`: opens the page in the browser, with a link that works once."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from annabelle.cli.hub_client import post_json
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import print_outcome
from annabelle.cli.up import bring_up
from annabelle.core.home import Home

NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the link.")]

app = command_app()


@app.command("open")
def open_page(no_browser: NoBrowser = False, json: Json = False) -> None:
    """Open Annabelle in the browser; starts it first if it does not run."""
    running, _started = bring_up(Home.from_environment())
    made = post_json("/sessions/links", {})
    url = f"{running.url}{made['path']}"
    opened = not (no_browser or json) and webbrowser.open(url)
    told = "Annabelle opens in your browser." if opened else "Open this link in a browser; it works once:"
    print_outcome({"url": url, "expiresAt": made["expiresAt"], "opened": opened}, f"{told}\n{url}", json=json)
