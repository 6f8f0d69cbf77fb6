"""What it takes to start a server's process, and what one gets: a child with two pipes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from annabelle.toolbox.nursery.parcel import Parcel, wrap

LOG_MAX_BYTES = 10_000_000
_WARDEN_SECONDS = 6.0
"""A warden that is killed can not clean up below it, so it gets all the time its own work may take."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A process to start: one of our own by its module, or an external server by the parcel's command line.

    What it says on stderr goes into its log, or into a descriptor from which somebody else writes the log.
    """

    name: str
    parcel: Parcel
    log: Path
    module: str | None = None
    stderr: int | None = None
    kind: str = "mcp"

    @property
    def title(self) -> str:
        """What the system calls the process."""
        return f"{self.kind}-{self.name}" if self.module is not None else self.name


class Child:
    """A running process. Its pipes belong to whoever took it; `exited` tells when it is gone."""

    def __init__(
        self, pid: int, stdin: int, stdout: int, send_signal: Callable[[int], None], *, warden: bool = False
    ) -> None:
        self.pid = pid
        self._needs_seconds = _WARDEN_SECONDS if warden else 0.0
        self.stdin, self.stdout = stdin, stdout
        self._send_signal = send_signal
        self.exited: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    def gone(self, code: int | None) -> None:
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


class Launcher(Protocol):
    """Starts processes. `stop` ends all that are left."""

    async def launch(self, order: Launch) -> Child: ...

    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Ends:
    """Both ends of a new child's descriptors: ours, and the four it gets."""

    stdin: int
    stdout: int
    for_child: tuple[int, int, int, int]


@contextlib.contextmanager
def prepared(order: Launch) -> Generator[Ends]:
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
        parcel = wrap(order.parcel)
        theirs.append(parcel)
        yield Ends(our_out, our_in, (child_in, child_out, log, parcel))
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


def last_words(path: Path, limit: int = 300) -> str:
    """The last line of a server's log, which mostly tells why it would not start."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 4000))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return lines[-1][:limit] if lines else ""
