"""`run/hub.json`: how the commands of the terminal find the running hub."""

from __future__ import annotations

import json
import os
from datetime import datetime

from annabelle import __version__
from annabelle.core.home import Home, write_atomically


def announce(home: Home, url: str, started: datetime) -> None:
    """Tell where the hub is; written when it is ready."""
    known = {"pid": os.getpid(), "url": url, "version": __version__, "started": started.isoformat()}
    write_atomically(home.hub_file, json.dumps(known) + "\n")


def withdraw(home: Home) -> None:
    home.hub_file.unlink(missing_ok=True)
