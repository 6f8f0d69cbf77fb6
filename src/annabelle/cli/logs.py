"""`annabelle logs`: shows the last lines of a component's log and follows it."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import Annotated

import typer

from annabelle.cli.options import Json, command_app
from annabelle.cli.output import print_json, print_line
from annabelle.core.errors import NotFound
from annabelle.core.home import Home


class LogFollower:
    """Returns complete lines added since the last call; the file may not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity, self._position = self._read_position()

    def _read_position(self) -> tuple[int | None, int]:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None, 0
        return found.st_ino, found.st_size

    def new_lines(self) -> list[str]:
        identity, size = self._read_position()
        if identity is None:
            return []
        if identity != self._identity or size < self._position:
            # The log was rotated or recreated. Lines added to the old file meanwhile are in its numbered successor.
            self._identity, self._position = identity, 0
        with self._path.open("rb") as file:
            file.seek(self._position)
            added = file.read(size - self._position)
        whole = added[: added.rfind(b"\n") + 1]
        self._position += len(whole)
        return whole.decode("utf-8", errors="replace").splitlines()


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
    last = tail(path, lines)
    if json:
        print_json({"component": component, "path": str(path), "lines": last})
        return
    for line in last:
        print_line(line)
    while follow:
        for line in follower.new_lines():
            print_line(line)
        time.sleep(POLL_SECONDS)


def find_log(home: Home, component: str) -> Path:
    """The log file of a component; raises NotFound with the known names."""
    known = {path.stem: path for path in sorted(home.logs.glob("*.log"))}
    if component not in known:
        names = ", ".join(known) or "none yet: start Annabelle first"
        raise NotFound(f"There is no log of {component!r}.", hint=f"There are: {names}.")
    return known[component]


def tail(path: Path, lines: int) -> list[str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        return [line.rstrip("\n") for line in deque(file, maxlen=lines)]
