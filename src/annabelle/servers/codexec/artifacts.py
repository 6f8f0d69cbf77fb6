"""Files that code has made: found by comparing a folder before and after, and brought into the workspace."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from annabelle.core.errors import AnnabelleError
from annabelle.servers.kit import StopSign, in_thread
from annabelle.servers.kit.files.parts import stamp
from annabelle.servers.kit.files.workspace import Workspace

RESULTS = "Code/results"
MOST_LISTED = 50
MOST_KEPT = 20
_MOST_SEEN = 5_000
_MOST_BYTES = 52_428_800
_UNSEEN = ("__pycache__", "node_modules", ".cache", ".npm")

Seen = Mapping[str, tuple[int, int]]
"""Path below the folder → when it was last changed, and its size."""


@dataclass(frozen=True, slots=True)
class Artifacts:
    """Paths as the model can use them, and how many more there were or could not be kept."""

    paths: tuple[str, ...] = ()
    left_out: int = 0


async def survey(folder: Path) -> Seen:
    """What is in a folder now, within bounds; a folder with more than that is not compared at all."""

    def work(stop: StopSign) -> Seen:
        seen: dict[str, tuple[int, int]] = {}
        for path, status, _, _ in _files(folder, stop):
            seen[path] = (status.st_mtime_ns, status.st_size)
            if len(seen) >= _MOST_SEEN:
                break
        return seen

    return await in_thread(work)


async def changed(folder: Path, before: Seen, shown: str) -> Artifacts:
    """New and changed files of a folder in the workspace, named as the caller names the folder."""
    new = _changed(before, await survey(folder))
    prefix = "" if shown in ("", ".") else f"{shown.rstrip('/')}/"
    return Artifacts(tuple(f"{prefix}{path}" for path in new[:MOST_LISTED]), max(0, len(new) - MOST_LISTED))


async def kept(folder: Path, before: Seen, workspace: Workspace) -> Artifacts:
    """New and changed files of a private folder, copied to the workspace. What may not be made there is left out."""
    new = _changed(before, await survey(folder))
    if not new:
        return Artifacts()
    target, paths = f"{RESULTS}/{stamp()}", list[str]()
    budget = _MOST_BYTES
    for path in new[:MOST_KEPT]:
        data = await in_thread(lambda stop, path=path, most=budget: _read(folder, path, most, stop))
        if data is None:
            continue
        parent, _, name = path.rpartition("/")
        with contextlib.suppress(AnnabelleError):
            place = await workspace.keep(f"{target}/{parent}" if parent else target, name, data)
            paths.append(place.path)
            budget -= len(data)
    return Artifacts(tuple(paths), len(new) - len(paths))


def _changed(before: Seen, after: Seen) -> list[str]:
    if len(before) >= _MOST_SEEN:
        return []
    return sorted(path for path, mark in after.items() if before.get(path) != mark)


def _files(folder: Path, stop: StopSign) -> Iterator[tuple[str, os.stat_result, str, int]]:
    """Regular files only, by descriptors: code that still runs may exchange a folder for a link at any moment."""
    with contextlib.suppress(OSError):
        for place, folders, files, descriptor in os.fwalk(folder, follow_symlinks=False):
            stop.check()
            folders[:] = sorted(name for name in folders if name not in _UNSEEN)
            for name in files:
                with contextlib.suppress(OSError, UnicodeEncodeError):
                    status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    path = os.path.relpath(os.path.join(place, name), folder)
                    path.encode()  # a name that is no text can not be spoken of
                    if stat.S_ISREG(status.st_mode):
                        yield path, status, name, descriptor


def _read(folder: Path, wanted: str, most: int, stop: StopSign) -> bytes | None:
    for path, status, name, descriptor in _files(folder, stop):
        if path != wanted or status.st_size > most:
            continue
        with contextlib.suppress(OSError):
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=descriptor)
            with os.fdopen(opened, "rb") as file:
                if stat.S_ISREG(os.fstat(opened).st_mode):
                    return file.read(most)
    return None
