"""What a command that may start Annabelle says before its own code is even loaded."""

from __future__ import annotations

from annabelle.cli.patience import say
from annabelle.core.home import Home


def first_words() -> None:
    """A running hub leaves a note in the home; without one, a start is to come."""
    if not Home.from_environment().hub_file.exists():
        say("Starting Annabelle")
