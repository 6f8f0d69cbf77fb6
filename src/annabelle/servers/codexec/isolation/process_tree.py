"""Process count and memory of a sandbox's process tree, read from /proc."""

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
    """Usage of a process tree. Shared memory is counted once where the system reports it."""

    processes: int
    memory_bytes: int


def list_children(pid: int) -> list[int]:
    """Running child processes, oldest first."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for task in os.listdir(_PROC / str(pid) / "task"):
            found += map(int, (_PROC / str(pid) / "task" / task / "children").read_text().split())
    return sorted(found)


def list_descendants(pid: int) -> list[int]:
    """All processes below one. Orphans stay in the tree: the sandbox's first process adopts them."""
    found: list[int] = []
    waiting = [pid]
    while waiting and len(found) < _MOST:
        below = list_children(waiting.pop())
        found += below
        waiting += below
    return found


def measure_usage(pid: int, enough: int) -> ProcessUsage:
    """Usage of the tree. Shared memory is examined only if the plain sum exceeds `enough`."""
    tree = list_descendants(pid)
    resident = sum(_resident(each) for each in tree)
    if resident > enough:
        resident = sum(_proportional(each) for each in tree)
    return ProcessUsage(len(tree), resident)


def kill_tree(pid: int) -> None:
    """Kill a process with all its descendants. On macOS, where the tree cannot be read, kill its group."""
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
