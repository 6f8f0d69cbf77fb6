"""What folders take on the disk. Everything here blocks; call it in a thread."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_MOST_FILES = 20_000


@dataclass(frozen=True, slots=True)
class Disk:
    """A private folder, and what all files in it may have together. A folder full of empty files is full too."""

    folder: Path
    most_bytes: int
    most_files: int = _MOST_FILES

    def over(self) -> bool:
        used = used_by([self.folder], self.most_files)
        return used.files > self.most_files or used.bytes > self.most_bytes


@dataclass(frozen=True, slots=True)
class Used:
    """What some folders take."""

    bytes: int
    files: int


def used_by(folders: Iterable[Path], most_files: int | None = None) -> Used:
    """What all files below take together. Links are not followed; past `most_files` counting ends."""
    total = files = 0
    waiting = [str(folder) for folder in folders]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                files += 1
                if most_files is not None and files > most_files:
                    return Used(total, files)
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
    return Used(total, files)
