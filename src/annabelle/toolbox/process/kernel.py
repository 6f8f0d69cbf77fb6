"""Linux process control: die with the parent, adopt orphans, find and kill whole process trees."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_FIRST_SPARE = 3


def _prctl(option: int, value: int | bytes) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    argument = ctypes.c_char_p(value) if isinstance(value, bytes) else ctypes.c_ulong(value)
    if library.prctl(option, argument, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def die_with_parent(parent: int, number: int) -> None:
    """Get signal `number` when the parent ends; exit at once if it already has."""
    if sys.platform != "linux":
        return  # elsewhere the closed standard input ends a server
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(0)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none escapes."""
    if sys.platform == "linux":
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_process_name(name: str) -> None:
    """Set the name that `ps` and `top` show."""
    if sys.platform == "linux":
        _prctl(_PR_SET_NAME, name.encode()[:15])


def close_all_but_standard() -> None:
    os.closerange(_FIRST_SPARE, 1 << 20)


def reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())


def _parents() -> dict[int, int]:
    table: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_bytes()
            except OSError:
                continue  # it ended meanwhile
            # The command in parentheses may hold anything, so count from the last one.
            table[int(entry)] = int(stat[stat.rindex(b")") + 2 :].split()[1])
    return table


def find_descendants(root: int) -> list[int]:
    """Every living process below `root`, parents before children."""
    parents = _parents()
    found: list[int] = []
    layer = {root}
    while layer:
        layer = {pid for pid, parent in parents.items() if parent in layer}
        found += sorted(layer)
    return found


def find_children() -> list[int]:
    own = os.getpid()
    return [pid for pid, parent in _parents().items() if parent == own]


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def kill_descendants(seconds: float = 5.0) -> None:
    """Kill and reap all descendants; those that fork meanwhile are found in the next round."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for pid in find_descendants(os.getpid()):
            kill(pid)
        if not reap():
            return
        time.sleep(0.002)


def reap() -> bool:
    """Collect every ended child. Returns whether some are still alive."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


_ROUNDS = 3


def kill_tree(pid: int) -> None:
    """SIGKILL a process and all its descendants, also those in other process groups.

    Children are found through /proc. Elsewhere the process alone is killed, and its group if it leads one; what
    reads its pipes ends by itself.
    """
    if sys.platform == "linux":
        tree = [pid, *find_descendants(pid)]
        for _ in range(_ROUNDS):  # one that forks meanwhile is found in the next round
            # Stop all before killing one: an orphan would be adopted by another process and lost.
            for each in tree:
                _signal(each, signal.SIGSTOP)
            found = [pid, *find_descendants(pid)]
            if set(found) <= set(tree):
                break
            tree = found
        for each in reversed(tree):
            _signal(each, signal.SIGKILL)
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
    _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
