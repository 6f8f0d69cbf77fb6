"""Gives folders to the users that code runs as, where root runs Annabelle."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from annabelle.servers.codexec.isolation.layer import NOBODY

FIRST_USER, _USERS = 1_900_000_000, 200_000_000
"""Numbers beyond those that accounts, containers and service managers give out."""

_MOST_ENTRIES = 50_000


def give_to_nobody_else(folder: Path) -> None:
    """Give a private folder, with what root has put into it since, to a user that exists nowhere else."""
    user = folder.stat().st_uid
    if user == 0:
        user = FIRST_USER + secrets.randbelow(_USERS)
        try:
            os.chown(folder, user, user)
        except OSError:  # inside a container that knows few users
            user = NOBODY
    hand_over(folder, user)


def hand_over(folder: Path, user: int) -> None:
    """Give what belongs to root in a folder to a user. Files with a second name elsewhere, and whatever belongs to
    somebody else, stay as they are; links are not followed."""
    if folder.stat().st_uid not in (0, user):
        return
    seen = 0
    for _, folders, files, descriptor in os.fwalk(folder, follow_symlinks=False):
        for name in (".", *folders, *files):
            seen += 1
            with contextlib.suppress(OSError):
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if status.st_uid == 0 and (stat.S_ISDIR(status.st_mode) or status.st_nlink == 1):
                    os.chown(name, user, user, dir_fd=descriptor, follow_symlinks=False)
        if seen > _MOST_ENTRIES:
            return
