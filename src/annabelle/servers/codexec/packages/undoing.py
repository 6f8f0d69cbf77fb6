"""Takes packages back that did not fit. All of it blocks; call it in a thread."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path

_LISTS = ("package.json", "package-lock.json", "node_modules/.package-lock.json")
"""Where npm writes down what it has installed; what stands there is fetched with the next package."""
_SHARED = ("__pycache__", "bin", ".bin")
"""Folders that several packages put something into."""


@dataclass(frozen=True, slots=True)
class Before:
    """What an environment had of a language before something was installed.

    A package that was there in another version stays as it is now: the old one is gone.
    """

    folder: Path
    packages: frozenset[Path]
    lists: dict[str, bytes]

    @classmethod
    def of(cls, folder: Path) -> Before:
        lists = {name: (folder / name).read_bytes() for name in _LISTS if (folder / name).is_file()}
        return cls(folder, frozenset(_packages(folder)), lists)

    def bring_back(self) -> None:
        """Remove what is new."""
        for place in _packages(self.folder) - self.packages:
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    place.unlink()
        for name in _LISTS:
            with contextlib.suppress(OSError):
                (self.folder / name).unlink(missing_ok=True)
                if name in self.lists:
                    (self.folder / name).write_bytes(self.lists[name])


def _packages(folder: Path) -> set[Path]:
    """The places packages are at: beside each other for Python; for Node below node_modules, some in a scope."""
    found: set[Path] = set()
    for place in (*_inside(folder), *_inside(folder / "node_modules")):
        if place.name == "node_modules":
            continue
        found |= set(_inside(place)) if place.name in _SHARED or place.name.startswith("@") else {place}
    return found


def _inside(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
