"""`run/hub.json`: how the commands of the terminal find the running hub."""

from __future__ import annotations

import json
import os
from datetime import datetime

from annabelle import __version__
from annabelle.core.errors import StorageTrouble
from annabelle.core.home import Home, write_atomically


def announce(home: Home, url: str, started: datetime) -> None:
    """Tell where the hub is; written when it is ready."""
    known = {"pid": os.getpid(), "url": url, "version": __version__, "started": started.isoformat()}
    try:
        write_atomically(home.hub_file, json.dumps(known) + "\n")
    except OSError as error:
        raise StorageTrouble(
            f"{home.hub_file} can not be written: {error.strerror}.",
            hint="Free space or fix its permissions: no command finds the hub without it.",
        ) from error


def withdraw(home: Home) -> None:
    home.hub_file.unlink(missing_ok=True)
