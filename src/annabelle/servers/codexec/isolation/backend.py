"""What a sandbox may see and use, and the interface of sandbox backends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import stat
from abc import ABC, abstractmethod
from asyncio.subprocess import Process
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

CODE = "/code"
WORK = "/work"
SCRATCH = "/tmp"  # noqa: S108  inside a sandbox, where it is private and in memory
SANDBOX_HOME = f"{SCRATCH}/home"
NOBODY = 65534


@dataclass(frozen=True, slots=True)
class Mount:
    """A host file or folder that is visible inside, read-only by default."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits for all processes of a sandbox. `cpu_seconds` is None if only wall time counts."""

    processes: int
    memory_bytes: int
    file_bytes: int
    cpu_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """A program with its arguments and everything it may see, as seen from inside."""

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
    """Path of an interpreter inside, and the mounts it needs."""

    argv: tuple[str, ...]
    mounts: tuple[Mount, ...] = ()


class SandboxBackend(ABC):
    """A way to isolate code. What a backend does not need to do itself has a default here."""

    name: ClassVar[str]
    programs_of_host: ClassVar[bool] = True
    """Whether host programs run inside, rather than those of an image."""

    @abstractmethod
    def missing(self) -> str | None:
        """What is not installed, without starting anything. None if the backend is worth trying."""

    def prepare(self, folder: Path, *, private: bool) -> None:
        """Give a folder that is writable inside to the user that code runs as. Blocks; call it in a thread."""
        return

    def place(self, mount: Mount) -> str:
        """Path of a mount as seen from inside."""
        return mount.target

    def call_filter(self, sandbox: SandboxSpec) -> bytes | None:
        """Seccomp program of system calls to refuse, or None."""
        return None

    @abstractmethod
    def command(self, sandbox: SandboxSpec, call_filter: int | None = None) -> list[str]:
        """Command that runs the sandbox. `call_filter` is a descriptor to read the filter from."""

    def environment(self, sandbox: SandboxSpec) -> dict[str, str]:
        """Environment of the command."""
        return dict(sandbox.env)

    def interpreter(self, pid: int) -> int | None:
        """Process to interrupt, given the pid of the command. None if it can only be killed."""
        return None

    def stop_command(self, sandbox: SandboxSpec) -> list[str] | None:
        """Command that ends the sandbox where killing its process does not."""
        return None


_STREAM_LIMIT = 1 << 16


async def spawn_sandbox(
    backend: SandboxBackend, sandbox: SandboxSpec, *, stdin: int, stdout: int, stderr: int
) -> Process:
    """Start the sandbox with its own environment, without the server's. Raises OSError."""
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
            start_new_session=True,  # Ctrl-C in a terminal must not reach it
        )


@contextmanager
def readable_descriptor(data: bytes | None) -> Generator[int | None]:
    """Yield a descriptor from which another process can read the data."""
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
"""User ids above those that accounts, containers and service managers use."""

_MOST_ENTRIES = 50_000


def give_to_new_user(folder: Path) -> None:
    """Give root's files in a private folder to a user id that is used nowhere else."""
    user = folder.stat().st_uid
    if user == 0:
        user = FIRST_USER + secrets.randbelow(_USERS)
        try:
            os.chown(folder, user, user)
        except OSError:  # a container with few user ids
            user = NOBODY
    give_folder(folder, user)


def give_folder(folder: Path, user: int) -> None:
    """Give root's files in a folder to a user. Skips hard links and files of other users, and follows no links."""
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
