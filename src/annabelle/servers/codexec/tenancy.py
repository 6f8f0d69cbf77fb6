"""Tells folders of a server that still runs from what one has left behind.

By a lock and not by a process number: the number of a server that has ended is soon another process's.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path


class Tenancy:
    """The word this server's folders begin with, and a lock on it for as long as the process lives."""

    def __init__(self, locks: Path) -> None:
        self._locks = locks
        self._held: int | None = None
        self.word = secrets.token_hex(4)

    def begin(self) -> None:
        """Say that this server runs."""
        self._locks.mkdir(parents=True, exist_ok=True)
        while self._held is None:
            held = os.open(self._locks / self.word, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(held, fcntl.LOCK_EX)
            if os.fstat(held).st_nlink:
                self._held = held
            else:  # another server took it for a forgotten one before it was locked
                os.close(held)

    def end(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            (self._locks / self.word).unlink(missing_ok=True)
            os.close(held)

    def forget_ended(self) -> set[str]:
        """The words of servers that run, this one's included; those of the others are forgotten."""
        running: set[str] = set()
        for file in self._locks.iterdir():
            if file.name == self.word or not _free(file):
                running.add(file.name)
            else:
                file.unlink(missing_ok=True)
        return running


def _free(file: Path) -> bool:
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
