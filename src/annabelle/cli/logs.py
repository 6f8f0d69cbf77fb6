"""`annabelle logs`: shows the last lines of a component's log and follows it."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from annabelle.cli.options import Json, command_app
from annabelle.cli.output import print_json, print_line
from annabelle.core.home import Home
from annabelle.core.log_tail import LogFollower, find_log, read_lines

POLL_SECONDS = 0.2

app = command_app()


@app.command()
def logs(
    component: Annotated[str, typer.Argument(help="hub, cli, an agent's thinker or a server.")] = "hub",
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="How many of the last lines.")] = 50,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on with what is written from now on.")] = False,
    json: Json = False,
) -> None:
    """Show the log of the hub or of another component."""
    path = find_log(Home.from_environment(), component)
    follower = LogFollower(path)
    last = read_lines(path, lines)
    if json:
        print_json({"component": component, "path": str(path), "lines": last})
        return
    for line in last:
        print_line(line)
    while follow:
        for line in follower.new_lines():
            print_line(line)
        time.sleep(POLL_SECONDS)
