"""The process tree of a sandbox, read from /proc: process count and memory."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MOST = 5_000


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """What a tree of processes uses; memory that several share is counted once where the system tells."""

    processes: int
    memory_bytes: int


def list_children(pid: int) -> list[int]:
    """The processes a process has started and that still run, oldest first."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for task in os.listdir(_PROC / str(pid) / "task"):
            found += map(int, (_PROC / str(pid) / "task" / task / "children").read_text().split())
    return sorted(found)


def list_descendants(pid: int) -> list[int]:
    """Everything below a process. Nothing leaves this tree: orphans of a cell fall to the cell's own first process."""
    found: list[int] = []
    waiting = [pid]
    while waiting and len(found) < _MOST:
        below = list_children(waiting.pop())
        found += below
        waiting += below
    return found


def measure_usage(pid: int, enough: int) -> ProcessUsage:
    """What the tree uses. Sharing is looked into only when the plain sum would be more than `enough`."""
    tree = list_descendants(pid)
    resident = sum(_resident(each) for each in tree)
    if resident > enough:
        resident = sum(_proportional(each) for each in tree)
    return ProcessUsage(len(tree), resident)


def kill_tree(pid: int) -> None:
    """Kill a process with all below it: whatever holds the others together dies first. Where no tree can be read, as on
    macOS, its group is what holds them together."""
    tree = list_descendants(pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for each in (*tree, pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(each, signal.SIGKILL)


def _resident(pid: int) -> int:
    try:
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _proportional(pid: int) -> int:
    try:
        for line in (_PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return _resident(pid)
    return 0
