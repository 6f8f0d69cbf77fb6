"""A disk that runs full and has room again: a small one where it may be mounted, else a limit on what is written."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import psutil

FORCE_LIMIT = "ANNABELLE_TEST_NO_MOUNT"


class Disk(ABC):
    """Room for one home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def fill(self, pid: int | None = None) -> None:
        """From now on nothing can be written by the process and its children, nor by those this one starts."""

    @abstractmethod
    def free(self, pid: int | None = None) -> None:
        """There is room again."""


class MountedDisk(Disk):
    """A real file system of 16 MB, filled to its last byte."""

    def fill(self, pid: int | None = None) -> None:
        with (self.folder / "ballast").open("ab", buffering=0) as ballast:
            for size in (65536, 1):
                with contextlib.suppress(OSError):
                    while True:
                        ballast.write(b"x" * size)

    def free(self, pid: int | None = None) -> None:
        (self.folder / "ballast").unlink(missing_ok=True)


class LimitedDisk(Disk):
    """Without the right to mount: the kernel refuses every byte these processes write to a file."""

    def fill(self, pid: int | None = None) -> None:
        self._limit(pid, 0)

    def free(self, pid: int | None = None) -> None:
        self._limit(pid, resource.RLIM_INFINITY)

    def _limit(self, pid: int | None, size: int) -> None:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)] if pid is not None else []
        for member in [os.getpid()] if pid is None else [one.pid for one in family]:
            _, hard = resource.prlimit(member, resource.RLIMIT_FSIZE)
            resource.prlimit(member, resource.RLIMIT_FSIZE, (size, hard))


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Disk]:
    folder.mkdir()
    mounted = FORCE_LIMIT not in os.environ and _mount(folder)
    disk = MountedDisk(folder) if mounted else LimitedDisk(folder)
    try:
        yield disk
    finally:
        disk.free()
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def _mount(folder: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "annabelle-test", str(folder)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
