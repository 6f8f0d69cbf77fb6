"""Reads what is added to a log file, also across its rotation."""

from __future__ import annotations

from pathlib import Path


class LogFollower:
    """Gives the whole lines that came since the last look; a file that does not exist yet is waited for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity, self._position = self._look()

    def _look(self) -> tuple[int | None, int]:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None, 0
        return found.st_ino, found.st_size

    def new_lines(self) -> list[str]:
        identity, size = self._look()
        if identity is None:
            return []
        if identity != self._identity or size < self._position:
            # Rotated or started anew: what was added to the old file in between is in its numbered successor.
            self._identity, self._position = identity, 0
        with self._path.open("rb") as file:
            file.seek(self._position)
            added = file.read(size - self._position)
        whole = added[: added.rfind(b"\n") + 1]
        self._position += len(whole)
        return whole.decode("utf-8", errors="replace").splitlines()
