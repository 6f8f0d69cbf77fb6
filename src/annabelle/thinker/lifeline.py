"""Ties the life of a thinker to the hub that started it: no hub, no thinker (I-25).

The hub keeps the other end of standard input open. When it dies, however it dies, the end of input arrives; on Linux
the kernel also kills the process at once.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent ends; a parent that is already gone ends it now."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


def watch_input(descriptor: int, gone: Callable[[], None]) -> None:
    """Call `gone` when standard input ends. What else arrives there is not read."""
    loop = asyncio.get_running_loop()

    def readable() -> None:
        try:
            data = os.read(descriptor, 4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            loop.remove_reader(descriptor)
            gone()

    os.set_blocking(descriptor, False)
    loop.add_reader(descriptor, readable)
