"""Serving in the foreground: the hub runs as our child, its log is our output, a stop signal stops both."""

from __future__ import annotations

import sys
import time
from typing import NoReturn

from annabelle.cli.hub_session import HubSession
from annabelle.cli.log_follower import LogFollower
from annabelle.core.errors import AlreadyRunning, Unavailable

POLL_SECONDS = 0.2


def serve(session: HubSession, log: LogFollower) -> NoReturn:
    """Show the hub's log until a signal ends this process, or the hub ends by itself."""
    if session.own is None:
        raise AlreadyRunning(
            f"Annabelle already runs at {session.note.url} (process {session.note.pid}).",
            hint="Stop it first (annabelle down), or watch it: annabelle logs -f",
        )
    sys.stderr.write(f"Annabelle serves at {session.note.url} until it is stopped.\n")
    while session.own.process.poll() is None:
        for line in log.new_lines():
            sys.stderr.write(f"{line}\n")
        time.sleep(POLL_SECONDS)
    raise Unavailable(
        f"The hub ended by itself (exit code {session.own.process.returncode}).",
        hint="Its log tells why: annabelle logs",
    )
