"""Ends a process with everything it ever started, at once, whatever state it is in."""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from annabelle.toolbox.nursery.kernel import descendants

_ROUNDS = 3


def kill_tree(pid: int) -> None:
    """SIGKILL for a process and all below it, also for those in other groups. A stopped process dies of it, too.

    Children are found through /proc. Elsewhere the process alone is killed, and its group if it leads one; what hangs
    on its pipes ends by itself.
    """
    if sys.platform == "linux":
        tree = [pid, *descendants(pid)]
        for _ in range(_ROUNDS):  # one that forks while we look is found in the next round
            # All are held before one dies: an orphan would be adopted by somebody else, and lost to us.
            for each in tree:
                _signal(each, signal.SIGSTOP)
            found = [pid, *descendants(pid)]
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
