"""The end of a log file."""

from __future__ import annotations

import os
from pathlib import Path


def read_log_tail(path: Path, most_bytes: int) -> str:
    """The last whole lines within so many bytes. A line that is cut is left out: half a secret is not recognised."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - most_bytes))
        text = file.read(most_bytes).decode("utf-8", errors="replace")
    return text if size <= most_bytes else text.partition("\n")[2]
