"""How much disk files take, tolerant of files that come and go meanwhile."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def measure_file(path: Path) -> int:
    """Size of a file, with the journal that a SQLite file may have beside it; 0 if there is none."""
    size = 0
    for file in (path, path.with_name(f"{path.name}-wal")):
        with contextlib.suppress(OSError):
            size += file.stat().st_size
    return size


def measure_folder(folder: Path) -> int:
    """Size of all files below a folder; links are not followed."""
    size = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += Path(root, name).lstat().st_size
    return size
