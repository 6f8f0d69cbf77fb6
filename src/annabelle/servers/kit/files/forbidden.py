"""Places no grant can open: keys, configuration, the system, and what belongs to Annabelle itself."""

from __future__ import annotations

import contextlib
import os
import unicodedata
from collections.abc import Iterable
from pathlib import Path

Identity = tuple[int, int]
"""Device and inode: what a file is, however it is called."""

_IN_USER_HOME = (".ssh", ".gnupg", ".aws", ".config")
_OF_THE_SYSTEM = ("/etc", "/var", "/proc", "/sys", "/dev")


class Forbidden:
    """Knows forbidden places by name (also in other case and through links) and by identity."""

    def __init__(self, user_home: Path, own: Iterable[Path]) -> None:
        self._paths = [*(user_home / name for name in _IN_USER_HOME), *map(Path, _OF_THE_SYSTEM), *own]
        self._names = {fold(place) for path in self._paths for place in (path, Path(os.path.realpath(path)))}

    def covers(self, path: Path) -> bool:
        """Whether the path is a forbidden place or inside one."""
        names = fold(path)
        return any(names[:length] in self._names for length in range(1, len(names) + 1))

    def is_place(self, path: Path) -> bool:
        """Whether the path is itself a forbidden place; enough when everything above it was looked at."""
        return fold(path) in self._names

    def below(self, path: Path) -> bool:
        """Whether a forbidden place lies inside the path, so that moving the path would move it too."""
        names = fold(path)
        return any(place[: len(names)] == names for place in self._names)

    def identities(self) -> set[Identity]:
        """What the places are right now. Asked anew for each operation: they may appear while the filer runs."""
        found: set[Identity] = set()
        for path in self._paths:
            with contextlib.suppress(OSError):
                status = os.stat(path)
                found.add((status.st_dev, status.st_ino))
        return found


def fold(path: Path) -> tuple[str, ...]:
    """Names to compare by: some file systems take Keys, keys and a decomposed spelling for the same name."""
    return tuple(unicodedata.normalize("NFC", name).casefold() for name in path.parts)


def below(path: Path, root: Path) -> tuple[str, ...] | None:
    """The names from `root` down to `path`, or None when it is not inside."""
    count = len(root.parts)
    return path.parts[count:] if path.parts[:count] == root.parts else None
