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

from annabelle.core.errors import ServerDown, explain_os_error
from annabelle.toolbox.process.child_config import ChildConfig, write_config
from annabelle.toolbox.process.forkserver_process import python_command, python_environment

LOG_MAX_BYTES = 10_000_000
_REAPER_SECONDS = 6.0
"""A killed reaper cannot clean up its descendants, so it gets the time its own work may take."""


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """A process to start: one of our own by its module, or an external server by the command line in `config`.

    Its stderr goes to its log, or to `stderr` if that is given.
    """

    name: str
    config: ChildConfig
    log: Path
    module: str | None = None
    stderr: int | None = None
    kind: str = "mcp"

    @property
    def title(self) -> str:
        """The process name."""
        return f"{self.kind}-{self.name}" if self.module is not None else self.name


class ChildProcess:
    """A running process. The caller owns its pipes; `exited` resolves with its exit code."""

    def __init__(
        self, pid: int, stdin: int, stdout: int, send_signal: Callable[[int], None], *, reaper: bool = False
    ) -> None:
        self.pid = pid
        self._needs_seconds = _REAPER_SECONDS if reaper else 0.0
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
        """TERM, then KILL. Returns when the process is gone, or a few seconds after the KILL."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if await self.wait(0 if number == signal.SIGTERM else max(grace, self._needs_seconds)):
                return
            self.signal(number)
        await self.wait(5)

    async def wait(self, seconds: float) -> bool:
        done, _ = await asyncio.wait([self.exited], timeout=seconds)
        return bool(done)


class ProcessLauncher(Protocol):
    """Starts processes; `stop` ends those that still run."""

    async def launch(self, request: LaunchRequest) -> ChildProcess: ...

    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class PipeEnds:
    """Both ends of a new child's descriptors: ours, and the four it gets."""

    stdin: int
    stdout: int
    for_child: tuple[int, int, int, int]


@contextlib.contextmanager
def prepare_pipes(request: LaunchRequest) -> Generator[PipeEnds]:
    """Pipes, log and config for a child. The child's ends are closed on exit, ours only after an error."""
    ours: list[int] = []
    theirs: list[int] = []
    try:
        child_in, our_out = os.pipe()
        theirs.append(child_in)
        ours.append(our_out)
        our_in, child_out = os.pipe()
        ours.append(our_in)
        theirs.append(child_out)
        log = open_log(request.log) if request.stderr is None else os.dup(request.stderr)
        theirs.append(log)
        config = write_config(request.config)
        theirs.append(config)
        yield PipeEnds(our_out, our_in, (child_in, child_out, log, config))
    except BaseException:
        for descriptor in ours:
            os.close(descriptor)
        raise
    finally:
        for descriptor in theirs:
            os.close(descriptor)


def open_log(path: Path) -> int:
    """Open a log for appending; one that is too long is rotated first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        if path.stat().st_size > LOG_MAX_BYTES:
            path.replace(path.with_name(f"{path.name}.1"))
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def read_last_line(path: Path, limit: int = 300) -> str:
    """The last line of a server's log, which usually says why it did not start."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 4000))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return lines[-1][:limit] if lines else ""


class PlainLauncher:
    """Starts each process from scratch. They end with the hub: by a signal on Linux, by closed stdin elsewhere."""

    def __init__(self, python_path: tuple[str, ...]) -> None:
        self._python_path = python_path
        self._running: dict[int, tuple[ChildProcess, asyncio.Task[None]]] = {}

    async def launch(self, request: LaunchRequest) -> ChildProcess:
        with explain_os_error(ServerDown, f"{request.name} could not be started"), prepare_pipes(request) as ends:
            process = self._start(request, ends)
        child = ChildProcess(
            process.pid,
            ends.stdin,
            ends.stdout,
            lambda number: _send_signal(process, number),
            reaper=sys.platform == "linux",
        )
        self._running[process.pid] = (child, asyncio.create_task(self._wait(process, child)))
        return child

    async def stop(self) -> None:
        running = list(self._running.values())
        await asyncio.gather(*(child.end(0) for child, _ in running))
        if running:
            await asyncio.wait([task for _, task in running], timeout=5)

    def _start(self, request: LaunchRequest, ends: PipeEnds) -> subprocess.Popen[bytes]:
        stdin, stdout, log, config = ends.for_child
        own = str(os.getpid())
        if request.module is not None:
            line = python_command(
                "annabelle.toolbox.process.standalone", request.title, request.module, str(config), own
            )
        elif sys.platform == "linux":
            line = python_command("annabelle.toolbox.process.child", request.name, str(config), own)
        else:
            line = list(request.config.argv)
        inherits = request.module is not None or sys.platform == "linux"
        return subprocess.Popen(
            line,
            env=python_environment(self._python_path) if inherits else request.config.environment,
            stdin=stdin,
            stdout=stdout,
            stderr=log,
            pass_fds=(config,) if inherits else (),
            cwd=request.config.folder,
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
    else:  # no reaper here: the group is what the server started
        os.killpg(process.pid, number)
