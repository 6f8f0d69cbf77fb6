"""Keeps the workspace's temp folder from growing: old backups and trash go, and what a crash left unfinished."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import stat
import time

from annabelle.core.errors import NotAllowed
from annabelle.servers.kit.files.descend import Walker
from annabelle.servers.kit.files.layout import PART_PREFIX, TEMP
from annabelle.servers.kit.files.places import Root, Spot

_log = logging.getLogger(__name__)

_PART = re.compile(re.escape(PART_PREFIX) + r"(\d+)-[0-9a-f]+")
_KEPT = ("backups", "trash")
_MAX_DEPTH = 50


def clean_temp(walker: Walker, workspace: Root, days: float) -> None:
    """Remove what is older than `days` in temp/. Best effort: what can not be removed is left for the next time."""
    oldest = time.time() - days * 86_400
    spot = Spot(workspace, (TEMP,))
    try:
        with walker.readable_folder(spot) as folder:
            _clean(walker, folder, spot, oldest, 0)
    except FileNotFoundError:
        return
    except (OSError, NotAllowed) as error:
        _log.warning("temp was not cleaned: %s", error)


def _clean(walker: Walker, folder: int, here: Spot, oldest: float, depth: int) -> None:
    with os.scandir(folder) as entries:
        listed = list(entries)
    for entry in listed:
        with contextlib.suppress(OSError, NotAllowed):
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                if depth < _MAX_DEPTH:
                    child = here.child(entry.name)
                    with walker.child_folder(folder, child) as inner:
                        _clean(walker, inner, child, oldest, depth + 1)
                if not (depth == 0 and entry.name in _KEPT) and _age_mark(status) < oldest:
                    os.rmdir(entry.name, dir_fd=folder)
            elif _age_mark(status) < oldest or (depth == 0 and _is_orphan(entry.name)):
                os.unlink(entry.name, dir_fd=folder)


def _age_mark(status: os.stat_result) -> float:
    """When it came here: moving an old file into the trash changes its ctime, not its mtime."""
    return max(status.st_mtime, status.st_ctime)


def _is_orphan(name: str) -> bool:
    """An unfinished write whose process is gone."""
    match = _PART.fullmatch(name)
    if match is None:
        return False
    try:
        os.kill(int(match[1]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
