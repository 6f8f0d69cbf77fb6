"""The source files a process has loaded of us, each with its size and time: by these a listing is known to be stale."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable

Stamp = tuple[str, int, int]
"""A file, its size, and when it was last changed, in nanoseconds."""

_OURS = ("annabelle", "mcp_types")
_DOUBT_NS = 1_000_000_000

# What was changed later than this may have been loaded as it was before. A second for what was loaded before this line.
_LOADED_BEFORE = time.time_ns() - _DOUBT_NS


def loaded_sources(package: str) -> list[Stamp] | None:
    """Everything of ours, and of the package's own root, that is loaded; None when it may not be what is on disk."""
    roots = {*_OURS, package.partition(".")[0]}
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in roots]
    files = {file for file in (getattr(module, "__file__", None) for module in modules) if isinstance(file, str)}
    try:
        stamps = [_stamp(file) for file in sorted(files)]
    except OSError:
        return None  # not files, or gone
    return None if any(changed > _LOADED_BEFORE for _, _, changed in stamps) else stamps


def unchanged(stamps: Iterable[Stamp]) -> bool:
    try:
        return all(_stamp(stamp[0]) == stamp for stamp in stamps)
    except OSError:
        return False


def _stamp(file: str) -> Stamp:
    status = os.stat(file)
    return file, status.st_size, status.st_mtime_ns
