"""A sandboxed process, watched against its limits and ended with all its children."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio

from annabelle.core.errors import StorageTrouble, Unavailable
from annabelle.servers.codexec.isolation.backend import SandboxBackend, SandboxSpec, spawn_sandbox
from annabelle.servers.codexec.isolation.process_tree import kill_tree, measure_usage

_log = logging.getLogger(__name__)

_END_SECONDS = 10.0


class SandboxedProcess:
    """A running sandbox. The starter must call `kill`, even if the program has ended by itself."""

    def __init__(self, backend: SandboxBackend, sandbox: SandboxSpec, process: Process) -> None:
        self._backend = backend
        self._sandbox = sandbox
        self._process = process

    @classmethod
    async def start(cls, backend: SandboxBackend, sandbox: SandboxSpec, *, talks: bool = False) -> SandboxedProcess:
        """Start it. `talks` gives it a standard input to write to; otherwise stdin is empty."""
        try:
            process = await spawn_sandbox(backend, sandbox, stdin=PIPE if talks else DEVNULL, stdout=PIPE, stderr=PIPE)
        except OSError as error:
            raise Unavailable(f"The code could not be started: {error.strerror}.") from error
        return cls(backend, sandbox, process)

    @property
    def cell(self) -> SandboxSpec:
        return self._sandbox

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stdout(self) -> asyncio.StreamReader:
        return _require_stream(self._process.stdout)

    @property
    def stderr(self) -> asyncio.StreamReader:
        return _require_stream(self._process.stderr)

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    async def wait(self) -> int:
        return await self._process.wait()

    async def write_input(self, data: bytes) -> None:
        """Raises OSError if the program no longer reads."""
        stdin = self._process.stdin
        if stdin is None:
            raise StorageTrouble("This program was started without an input.")
        stdin.write(data)
        await stdin.drain()

    def interrupt(self) -> bool:
        """Send SIGINT. Returns False if the backend cannot."""
        pid = None if self.ended else self._backend.interpreter(self.pid)
        if pid is None:
            return False
        try:
            os.kill(pid, signal.SIGINT)
        except OSError:
            return False
        return True

    async def kill(self) -> None:
        """Kill it with all its children and wait, for a bounded time, even on cancellation."""
        with anyio.move_on_after(_END_SECONDS, shield=True) as scope:
            if not self.ended:
                await self._stop()
                kill_tree(self.pid)
                await self._process.wait()
        if scope.cancelled_caught:
            _log.error("a run of code could not be ended within %.0f seconds", _END_SECONDS)

    async def _stop(self) -> None:
        command = self._backend.stop_command(self._sandbox)
        if command is None:
            return
        with contextlib.suppress(OSError):
            stopper = await asyncio.create_subprocess_exec(
                *command, env=self._backend.environment(self._sandbox), stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
            )
            await stopper.wait()


def _require_stream(stream: asyncio.StreamReader | None) -> asyncio.StreamReader:
    if stream is None:
        raise StorageTrouble("This program was started without an output.")
    return stream


_MOST_FILES = 20_000


@dataclass(frozen=True, slots=True)
class DiskQuota:
    """Limit for all files of a private folder: their bytes and their number."""

    folder: Path
    most_bytes: int
    most_files: int = _MOST_FILES

    def is_exceeded(self) -> bool:
        used = measure_disk_usage([self.folder], self.most_files)
        return used.files > self.most_files or used.bytes > self.most_bytes


@dataclass(frozen=True, slots=True)
class DiskUsage:
    bytes: int
    files: int


def measure_disk_usage(folders: Iterable[Path], most_files: int | None = None) -> DiskUsage:
    """Total size of all files. Follows no links; stops counting after `most_files`."""
    total = files = 0
    waiting = [str(folder) for folder in folders]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                files += 1
                if most_files is not None and files > most_files:
                    return DiskUsage(total, files)
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
    return DiskUsage(total, files)


KillReason = Literal["time", "memory", "processes", "output", "disk", "closed"]

WATCH_SECONDS = 0.15
_DISK_EVERY_SECONDS = 1.0
_OVERHEAD_PROCESSES = 2
"""The backend's own processes in the tree: bwrap and the first process of the sandbox."""


class LimitWatch:
    def __init__(self, process: SandboxedProcess, disk: DiskQuota | None) -> None:
        self._process = process
        self._disk = disk
        self._disk_at = time.monotonic()

    async def check(self) -> KillReason | None:
        """Return why the sandbox must be ended, or None."""
        limits = self._process.cell.limits
        used = measure_usage(self._process.pid, limits.memory_bytes)
        if used.memory_bytes > limits.memory_bytes:
            return "memory"
        if used.processes > limits.processes + _OVERHEAD_PROCESSES:
            return "processes"
        if self._disk is not None and time.monotonic() - self._disk_at >= _DISK_EVERY_SECONDS:
            over = await asyncio.to_thread(self._disk.is_exceeded)
            self._disk_at = time.monotonic()
            return "disk" if over else None
        return None
