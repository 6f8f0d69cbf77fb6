"""What a sandbox may see and use, and the interface of the backends that enforce it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import stat
from asyncio.subprocess import Process
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

CODE = "/code"
WORK = "/work"
SCRATCH = "/tmp"  # noqa: S108  inside a cell, where it is private and in memory
SANDBOX_HOME = f"{SCRATCH}/home"
NOBODY = 65534


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine that is visible inside, by default for reading only."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What all processes of a cell may use; `cpu_seconds` is None where the clock alone decides."""

    processes: int
    memory_bytes: int
    file_bytes: int
    cpu_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """One program with its arguments, as seen from inside. What is not named here is not there."""

    name: str
    argv: tuple[str, ...]
    mounts: tuple[Mount, ...]
    folder: str
    env: Mapping[str, str]
    limits: SandboxLimits
    network: bool = False

    @property
    def writable(self) -> tuple[Mount, ...]:
        return tuple(mount for mount in self.mounts if mount.writable)


@dataclass(frozen=True, slots=True)
class SandboxProgram:
    """An interpreter by its path inside, and what must be visible so that it runs."""

    argv: tuple[str, ...]
    mounts: tuple[Mount, ...] = ()


class SandboxBackend(Protocol):
    """One way to keep code apart."""

    @property
    def name(self) -> str: ...

    @property
    def programs_of_host(self) -> bool:
        """Whether the programs of this machine run inside; otherwise those of an image."""
        ...

    def missing(self) -> str | None:
        """What is not there, without trying anything; None when it is worth a try."""
        ...

    def prepare(self, folder: Path, *, private: bool) -> None:
        """Make a folder that will be writable inside belong to whoever runs there; a private one is of no use to
        anybody else. Blocks; call it in a thread."""
        ...

    def place(self, mount: Mount) -> str:
        """Where a mount is seen from inside."""
        ...

    def call_filter(self, cell: SandboxSpec) -> bytes | None:
        """System calls to refuse, as a program for the kernel; None where the layer has no use for one."""
        ...

    def command(self, sandbox: SandboxSpec, call_filter: int | None = None) -> list[str]:
        """The command that runs the cell. The filter, if any, can be read from the given descriptor."""
        ...

    def environment(self, sandbox: SandboxSpec) -> dict[str, str]:
        """The environment the command is started with."""
        ...

    def interpreter(self, pid: int) -> int | None:
        """The process to interrupt, when `pid` is the command's; None when only the whole can be stopped."""
        ...

    def stop_command(self, sandbox: SandboxSpec) -> list[str] | None:
        """What ends the cell when killing the command does not."""
        ...


_STREAM_LIMIT = 1 << 16


async def spawn_sandbox(
    backend: SandboxBackend, sandbox: SandboxSpec, *, stdin: int, stdout: int, stderr: int
) -> Process:
    """The command, with the cell's environment and nothing of the server's own. Raises OSError."""
    with readable_descriptor(backend.call_filter(sandbox)) as descriptor:
        return await asyncio.create_subprocess_exec(
            *backend.command(sandbox, descriptor),
            env=backend.environment(sandbox),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            limit=_STREAM_LIMIT,
            pass_fds=() if descriptor is None else (descriptor,),
            umask=0o022,  # packages are fetched by one user and read by others
            start_new_session=True,  # Ctrl-C in a terminal is for Annabelle
        )


@contextmanager
def readable_descriptor(data: bytes | None) -> Generator[int | None]:
    """A descriptor from which another process can read some bytes; it is closed here at the end."""
    if data is None:
        yield None
        return
    descriptor = os.memfd_create("filter")
    try:
        os.write(descriptor, data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


FIRST_USER, _USERS = 1_900_000_000, 200_000_000
"""Numbers beyond those that accounts, containers and service managers give out."""

_MOST_ENTRIES = 50_000


def give_to_new_user(folder: Path) -> None:
    """Give a private folder, with what root has put into it since, to a user that exists nowhere else."""
    user = folder.stat().st_uid
    if user == 0:
        user = FIRST_USER + secrets.randbelow(_USERS)
        try:
            os.chown(folder, user, user)
        except OSError:  # inside a container that knows few users
            user = NOBODY
    give_folder(folder, user)


def give_folder(folder: Path, user: int) -> None:
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
