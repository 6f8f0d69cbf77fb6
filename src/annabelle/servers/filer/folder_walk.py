"""Walks folders in short steps, so that a long walk can report progress, be cancelled and end in time."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal

from annabelle.core.errors import NotAllowed
from annabelle.servers.kit import Result, StopSign
from annabelle.servers.kit.files.paths import TEMP, ResolvedPath
from annabelle.servers.kit.files.walker import PathWalker

MAX_SEEN = 200_000
MAX_SECONDS = 10.0
MAX_DEPTH = 40
_STEP_SECONDS = 0.2
_MAX_FOLDER = 50_000

EntryKind = Literal["file", "folder", "link", "other"]


class FolderEntry(Result):
    """One thing in a folder."""

    path: str
    kind: EntryKind
    size: int | None = None
    modified: datetime

    def to_text(self) -> str:
        size = "" if self.size is None else f"  {self.size} bytes"
        mark = {"folder": "/", "link": " (link, not followed)", "other": " (not a file)"}.get(self.kind, "")
        return f"{self.path}{mark}{size}"


OnEntry = Callable[[int, ResolvedPath, os.stat_result], None]


class FolderWalk:
    """Walks everything below some folders. Call `step` until `finished`, or until enough was found."""

    def __init__(self, starts: Sequence[ResolvedPath], *, recursive: bool = True, skip_temp: bool = True) -> None:
        self.starts = starts
        self.seen = 0
        self.limit: str | None = None
        self._recursive, self._skip_temp = recursive, skip_temp
        self._waiting = deque((spot, 0) for spot in starts)
        self._ends = time.monotonic() + MAX_SECONDS

    @property
    def finished(self) -> bool:
        return not self._waiting

    def step(self, walker: PathWalker, stop: StopSign, found: OnEntry | None = None) -> list[FolderEntry]:
        """Walk for a short while. `found` is called while the folder is open."""
        entries: list[FolderEntry] = []
        until = time.monotonic() + _STEP_SECONDS
        while self._waiting and time.monotonic() < until:
            stop.check()
            if self.seen >= MAX_SEEN or time.monotonic() > self._ends:
                self.limit = f"The walk was ended after {self.seen} entries; ask for a smaller folder."
                self._waiting.clear()
                break
            spot, depth = self._waiting.popleft()
            # Skip what vanishes or cannot be read; only the start itself is worth an error.
            with contextlib.suppress(OSError, NotAllowed):
                self._walk_folder(walker, stop, spot, depth, entries, found)
        return entries

    def _walk_folder(
        self,
        walker: PathWalker,
        stop: StopSign,
        here: ResolvedPath,
        depth: int,
        entries: list[FolderEntry],
        found: OnEntry | None,
    ) -> None:
        with walker.open_readable_folder(here) as folder:
            with os.scandir(folder) as listed:
                names = sorted(entry.name for entry in itertools.islice(listed, _MAX_FOLDER))
            if len(names) == _MAX_FOLDER:
                self.limit = f"{here.shown} has too many entries; not all of them were looked at."
            for name in names:
                stop.check()
                spot = here.child(name)
                try:
                    name.encode()  # skip names that are not valid text
                    status = walker.child_status(folder, spot)
                except (OSError, NotAllowed, UnicodeEncodeError):
                    continue
                self.seen += 1
                entries.append(_make_entry(spot, status))
                if found is not None:
                    found(folder, spot, status)
                if stat.S_ISDIR(status.st_mode) and self._goes_into(spot, depth):
                    self._waiting.append((spot, depth + 1))

    def _goes_into(self, spot: ResolvedPath, depth: int) -> bool:
        if not self._recursive or depth >= MAX_DEPTH:
            return False
        return not (self._skip_temp and spot.root.workspace and spot.names == (TEMP,))


def _make_entry(spot: ResolvedPath, status: os.stat_result) -> FolderEntry:
    mode = status.st_mode
    kind: EntryKind = (
        "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "other"
    )
    return FolderEntry(
        path=spot.shown,
        kind=kind,
        size=status.st_size if kind == "file" else None,
        modified=datetime.fromtimestamp(int(status.st_mtime), UTC),
    )
