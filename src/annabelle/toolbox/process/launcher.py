"""Launch requests, child processes with their pipes, and the launcher that starts each process from scratch."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from annabelle.core.errors import ServerDown
from annabelle.toolbox.process.child_config import ChildConfig, write_config
from annabelle.toolbox.process.forkserver_process import python_command, python_environment

LOG_MAX_BYTES = 10_000_000
_WARDEN_SECONDS = 6.0
"""A warden that is killed can not clean up below it, so it gets all the time its own work may take."""


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """A process to start: one of our own by its module, or an external server by the parcel's command line.

    What it says on stderr goes into its log, or into a descriptor from which somebody else writes the log.
    """

    name: str
    config: ChildConfig
    log: Path
    module: str | None = None
    stderr: int | None = None
    kind: str = "mcp"

    @property
    def title(self) -> str:
        """What the system calls the process."""
        return f"{self.kind}-{self.name}" if self.module is not None else self.name


class ChildProcess:
    """A running process. Its pipes belong to whoever took it; `exited` tells when it is gone."""

    def __init__(
        self, pid: int, stdin: int, stdout: int, send_signal: Callable[[int], None], *, warden: bool = False
    ) -> None:
        self.pid = pid
        self._needs_seconds = _WARDEN_SECONDS if warden else 0.0
        self.stdin, self.stdout = stdin, stdout
        self._send_signal = send_signal
        self.exited: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    def set_exited(self, code: int | None) -> None:
        if not self.exited.done():
            self.exited.set_result(code)

    def signal(self, number: int) -> None:
        if not self.exited.done():
            with contextlib.suppress(ProcessLookupError):
                self._send_signal(number)

    async def end(self, grace: float) -> None:
        """TERM, then KILL; returns when the process is gone, or after the kernel had every chance to end it."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if await self.wait(0 if number == signal.SIGTERM else max(grace, self._needs_seconds)):
                return
            self.signal(number)
        await self.wait(5)

    async def wait(self, seconds: float) -> bool:
        done, _ = await asyncio.wait([self.exited], timeout=seconds)
        return bool(done)


class ProcessLauncher(Protocol):
    """Starts processes. `stop` ends all that are left."""

    async def launch(self, order: LaunchRequest) -> ChildProcess: ...

    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class PipeEnds:
    """Both ends of a new child's descriptors: ours, and the four it gets."""

    stdin: int
    stdout: int
    for_child: tuple[int, int, int, int]


@contextlib.contextmanager
def prepare_pipes(order: LaunchRequest) -> Generator[PipeEnds]:
    """Pipes, log and parcel for a child. The child's ends are closed here afterwards, ours only if it failed."""
    ours: list[int] = []
    theirs: list[int] = []
    try:
        child_in, our_out = os.pipe()
        theirs.append(child_in)
        ours.append(our_out)
        our_in, child_out = os.pipe()
        ours.append(our_in)
        theirs.append(child_out)
        log = open_log(order.log) if order.stderr is None else os.dup(order.stderr)
        theirs.append(log)
        parcel = write_config(order.config)
        theirs.append(parcel)
        yield PipeEnds(our_out, our_in, (child_in, child_out, log, parcel))
    except BaseException:
        for descriptor in ours:
            os.close(descriptor)
        raise
    finally:
        for descriptor in theirs:
            os.close(descriptor)


def open_log(path: Path) -> int:
    """A log to add to; one that has grown too long is put aside."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        if path.stat().st_size > LOG_MAX_BYTES:
            path.replace(path.with_name(f"{path.name}.1"))
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def read_last_line(path: Path, limit: int = 300) -> str:
    """The last line of a server's log, which mostly tells why it would not start."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 4000))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return lines[-1][:limit] if lines else ""


class PlainLauncher:
    """Processes that die with the hub: by the kernel's word on Linux, by their closed input elsewhere."""

    def __init__(self, python_path: tuple[str, ...]) -> None:
        self._python_path = python_path
        self._running: dict[int, tuple[ChildProcess, asyncio.Task[None]]] = {}

    async def launch(self, order: LaunchRequest) -> ChildProcess:
        try:
            with prepare_pipes(order) as ends:
                process = self._start(order, ends)
        except OSError as error:
            raise ServerDown(f"{order.name} could not be started: {error.strerror}.") from error
        child = ChildProcess(
            process.pid,
            ends.stdin,
            ends.stdout,
            lambda number: _send_signal(process, number),
            warden=sys.platform == "linux",
        )
        self._running[process.pid] = (child, asyncio.create_task(self._wait(process, child)))
        return child

    async def stop(self) -> None:
        running = list(self._running.values())
        await asyncio.gather(*(child.end(0) for child, _ in running))
        if running:
            await asyncio.wait([task for _, task in running], timeout=5)

    def _start(self, order: LaunchRequest, ends: PipeEnds) -> subprocess.Popen[bytes]:
        stdin, stdout, log, parcel = ends.for_child
        own = str(os.getpid())
        if order.module is not None:
            line = python_command("annabelle.toolbox.process.standalone", order.title, order.module, str(parcel), own)
        elif sys.platform == "linux":
            line = python_command("annabelle.toolbox.process.child", order.name, str(parcel), own)
        else:
            line = list(order.config.argv)
        inherits = order.module is not None or sys.platform == "linux"
        return subprocess.Popen(
            line,
            env=python_environment(self._python_path) if inherits else order.config.environment,
            stdin=stdin,
            stdout=stdout,
            stderr=log,
            pass_fds=(parcel,) if inherits else (),
            cwd=order.config.folder,
            start_new_session=True,
        )

    async def _wait(self, process: subprocess.Popen[bytes], child: ChildProcess) -> None:
        if hasattr(os, "pidfd_open"):
            await _until_readable(os.pidfd_open(process.pid))
            code = process.wait()
        else:
            code = await asyncio.to_thread(process.wait)
        self._running.pop(process.pid, None)
        child.set_exited(code)


async def _until_readable(handle: int) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(handle, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def _send_signal(process: subprocess.Popen[bytes], number: int) -> None:
    if sys.platform == "linux":
        process.send_signal(number)
    else:  # no warden here: the group is what the server started
        os.killpg(process.pid, number)
