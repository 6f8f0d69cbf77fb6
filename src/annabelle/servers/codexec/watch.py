"""Looks after a running cell: what the kernel limits for each process is limited here for all of them together."""

from __future__ import annotations

import asyncio
import time
from typing import Literal

from annabelle.servers.codexec.caged import Caged
from annabelle.servers.codexec.disk import Disk
from annabelle.servers.codexec.isolation.tree import usage

Killed = Literal["time", "memory", "processes", "output", "disk", "closed"]

EVERY_SECONDS = 0.15
_DISK_EVERY_SECONDS = 1.0
_OVERHEAD_PROCESSES = 2
"""The layer's own processes in the tree: the one that waits and the first of the cell."""


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
            over = await asyncio.to_thread(self._disk.over)
            self._disk_at = time.monotonic()
            return "disk" if over else None
        return None
