"""One process per SQLite file, enforced by the kernel (I-22)."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import IO

from annabelle.core.errors import AlreadyRunning, StorageTrouble


class FileLock:
    """Holds `<file>.lock` while this process owns the file. The kernel releases it when the process dies."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._path = file.with_name(file.name + ".lock")
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Takes the lock; AlreadyRunning names the process that has it."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StorageTrouble(
                f"{self._path} can not be opened: {error.strerror}.", hint="Fix the permissions of its folder."
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _read_pid(descriptor)
            os.close(descriptor)
            if error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                raise StorageTrouble(f"{self._path} can not be locked: {error.strerror}.") from error
            raise AlreadyRunning(
                f"{self._file} is in use by process {holder or 'unknown'}.",
                hint="Stop that process first (annabelle down); a file has one owner.",
            ) from error
        self._descriptor = descriptor
        # The pid is only for the error message: on a full disk the lock works without it.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)

    def find_holder(self) -> int | None:
        """The process that has the lock, 0 if its number is not known; None if nobody has it. Takes nothing."""
        try:
            descriptor = os.open(self._path, os.O_RDWR)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return _read_pid(descriptor) or 0
        else:
            return None
        finally:
            os.close(descriptor)

    def release(self) -> None:
        # Keep the lock file: if it were removed, two processes could lock different files of the same name.
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


@contextlib.contextmanager
def open_beside_locks(path: Path) -> Generator[IO[bytes]]:
    """Opens the file of a database that may be open in this process; another process reads it.

    A process that closes a file loses all its locks on it, those of SQLite too, and without them the next program
    that closes the database deletes the WAL that is still written here. OSError if it can not be read.
    """
    with subprocess.Popen(["cat", "--", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as cat:
        assert cat.stdout is not None
        yield cat.stdout
    if cat.returncode > 0:  # below zero, it was not read to its end
        raise OSError(errno.EIO, "it can not be read", str(path))


def _read_pid(descriptor: int) -> int | None:
    try:
        return int(os.pread(descriptor, 20, 0))
    except (OSError, ValueError):
        return None
