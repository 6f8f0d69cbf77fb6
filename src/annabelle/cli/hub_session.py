"""A hub for the time of one command: the one that runs, or one of our own that ends with us."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from annabelle.cli.hub_client import HubFile
from annabelle.cli.hub_process import HubProcess, other_hub, running_hub, start_hub, stop_process, wait_until_ready
from annabelle.cli.patience import Patience
from annabelle.core.errors import AlreadyRunning
from annabelle.core.home import Home
from annabelle.core.settings import load_settings

EXTRA_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class HubSession:
    """The hub in use; `own` when this command started it."""

    note: HubFile
    own: HubProcess | None


@contextmanager
def hub_for_a_while(home: Home, meanwhile: Callable[[], None] | None = None) -> Generator[HubSession]:
    """Use the hub that runs, else start one and stop it at the end. `meanwhile` is done while it starts."""
    settings = load_settings(home)
    note = running_hub(home)
    if note is not None:
        yield HubSession(note, None)
        return
    own = start_hub(home, leashed=True)
    try:
        with Patience("Starting Annabelle"):
            if meanwhile is not None:
                meanwhile()
            try:
                note = wait_until_ready(home, own)
            except AlreadyRunning as refusal:
                note = other_hub(home, refusal)
        yield HubSession(note, own)
    finally:
        with Patience("Stopping Annabelle"):
            stop_process(own.process.pid, settings.annabelle_shutdown_grace_seconds + EXTRA_SECONDS, reap=own.process)
