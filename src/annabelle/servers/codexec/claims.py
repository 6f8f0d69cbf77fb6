"""Which folders running code can change right now.

Code that runs in a folder can exchange a folder below it for a link at any moment, so of two folders one of which is in
the other only one is used at a time: the path that was looked at might lead elsewhere by the time it is opened.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from annabelle.core.errors import Conflict


class Claims:
    """The folders in use, by their real paths."""

    def __init__(self) -> None:
        self._held: Counter[Path] = Counter()

    def take(self, folder: Path) -> None:
        """Use a folder; Conflict when running code could change the way to it, or it the way of others."""
        if any(held in folder.parents or folder in held.parents for held in self._held):
            raise Conflict(
                "Code is running in a folder above or below this one.",
                hint="Wait for it, close its session, or use the same folder.",
                field="working_dir",
            )
        self._held[folder] += 1

    def give_back(self, folder: Path) -> None:
        self._held[folder] -= 1
        if self._held[folder] <= 0:
            del self._held[folder]
