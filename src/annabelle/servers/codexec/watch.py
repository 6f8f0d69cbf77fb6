"""Looks after a running cell: what the kernel limits for each process is limited here for all of them together."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from annabelle.servers.codexec.caged import Caged
from annabelle.servers.codexec.isolation.tree import usage

Killed = Literal["time", "memory", "processes", "output", "disk", "closed"]

EVERY_SECONDS = 0.15
_DISK_EVERY_SECONDS = 1.0
_MOST_FILES = 20_000
_OVERHEAD_PROCESSES = 2
"""The layer's own processes in the tree: the one that waits and the first of the cell."""


@dataclass(frozen=True, slots=True)
class Disk:
    """A private folder, and what all files in it may have together."""

    folder: Path
    most_bytes: int


class Watch:
    """One cell under observation."""

    def __init__(self, caged: Caged, disk: Disk | None) -> None:
        self._caged = caged
        self._disk = disk
        self._disk_at = time.monotonic()

    async def look(self) -> Killed | None:
        """Why the cell has to be ended, or None."""
        limits = self._caged.cell.limits
        used = usage(self._caged.pid, limits.memory_bytes)
        if used.memory_bytes > limits.memory_bytes:
            return "memory"
        if used.processes > limits.processes + _OVERHEAD_PROCESSES:
            return "processes"
        if self._disk is not None and time.monotonic() - self._disk_at >= _DISK_EVERY_SECONDS:
            over = await asyncio.to_thread(_over, self._disk)
            self._disk_at = time.monotonic()
            return "disk" if over else None
        return None


def _over(disk: Disk) -> bool:
    """Whether a folder holds more than it may. Links are not followed; a folder full of empty files is full too."""
    total = files = 0
    waiting = [str(disk.folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                files += 1
                if files > _MOST_FILES:
                    return True
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total > disk.most_bytes
