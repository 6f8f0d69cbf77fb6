"""One hub per home: the second one is told who the first one is (HUB-05)."""

from __future__ import annotations

import json

from annabelle.core.errors import AlreadyRunning
from annabelle.core.home import Home
from annabelle.store.lock import FileLock


def take_home(home: Home) -> FileLock:
    """Own the home while this process lives."""
    lock = FileLock(home.hub_file)
    try:
        lock.acquire()
    except AlreadyRunning as error:
        raise AlreadyRunning(
            f"Annabelle already runs in {home.root}: {_whereabouts(home, error)}.",
            hint="Talk to that one, or stop it first with annabelle down.",
        ) from error
    return lock


def _whereabouts(home: Home, error: AlreadyRunning) -> str:
    try:
        known = json.loads(home.hub_file.read_text(encoding="utf-8"))
        return f"process {known['pid']} at {known['url']}"
    except (OSError, ValueError, KeyError, TypeError):
        # It has taken the home and does not listen yet.
        return error.message.rstrip(".")
