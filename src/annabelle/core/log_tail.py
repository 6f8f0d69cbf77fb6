"""The logs of a home: their last lines, and what is added to them."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

from annabelle.core.errors import NotFound
from annabelle.core.home import Home


def list_logs(home: Home) -> dict[str, Path]:
    """The log files by the names of their components."""
    return {path.stem: path for path in sorted(home.logs.glob("*.log"))}


def find_log(home: Home, component: str) -> Path:
    """The log file of a component; raises NotFound with the known names."""
    known = list_logs(home)
    if component not in known:
        names = ", ".join(known) or "none yet: start Annabelle first"
        raise NotFound(f"There is no log of {component!r}.", hint=f"There are: {names}.")
    return known[component]


def read_lines(path: Path, last: int, words: str = "") -> list[str]:
    """The last lines, or the last of those with these words in them."""
    wanted = words.lower()
    with path.open(encoding="utf-8", errors="replace") as file:
        return [line.rstrip("\n") for line in deque((one for one in file if wanted in one.lower()), maxlen=last)]


def read_log_tail(path: Path, most_bytes: int) -> str:
    """The last whole lines within so many bytes. A line that is cut is left out: half a secret is not recognised."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - most_bytes))
        text = file.read(most_bytes).decode("utf-8", errors="replace")
    return text if size <= most_bytes else text.partition("\n")[2]


class LogFollower:
    """Returns complete lines added since the last call; the file may not exist yet."""

    def __init__(self, path: Path, position: str = "") -> None:
        """Begins where another follower was, by its `position`, else at the end."""
        self._path = path
        self._identity, self._position = self._read_position()
        identity, _, offset = position.partition("-")
        if identity.isdecimal() and offset.isdecimal():
            self._identity, self._position = int(identity), int(offset)

    @property
    def position(self) -> str:
        return f"{self._identity or 0}-{self._position}"

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
