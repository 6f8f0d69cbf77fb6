"""Named places where a crash test can kill the process. They cost nothing unless a test arms one.

A test points `ANNABELLE_FAILPOINTS` at a folder and arms a point by creating a file with its name there. The first
process to reach the point renames the file, so exactly one process dies, and kills itself with SIGKILL.
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
    """Kills the process here if a test armed this point."""
    folder = _armed_folder()
    if folder is None:
        return
    try:
        (folder / name).rename(folder / f"{name}.hit-{os.getpid()}")
    except OSError:
        return
    die(os.getpid(), signal.SIGKILL)
