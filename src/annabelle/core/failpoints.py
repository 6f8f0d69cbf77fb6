"""Named places where a crash test may kill the process; free when no test has armed one.

A harness points `ANNABELLE_FAILPOINTS` at a folder and arms a point by creating a file of its name there. The process
that reaches it takes the file (so exactly one process dies), notes the hit, and kills itself with -9.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

VARIABLE = "ANNABELLE_FAILPOINTS"


def _armed_folder() -> Path | None:
    folder = os.environ.get(VARIABLE)
    return Path(folder) if folder else None


def failpoint(name: str, die: Callable[[int, int], None] = os.kill) -> None:
    """Die here if a test asked for it."""
    folder = _armed_folder()
    if folder is None:
        return
    try:
        (folder / name).rename(folder / f"{name}.hit-{os.getpid()}")
    except OSError:
        return
    die(os.getpid(), signal.SIGKILL)
