"""Runs a sandboxed program within its limits, and reports its output and the files it made."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from annabelle.core.errors import AnnabelleError
from annabelle.servers.codexec.isolation.backend import SandboxBackend, SandboxSpec
from annabelle.servers.codexec.sandboxed_process import (
    WATCH_SECONDS,
    DiskQuota,
    KillReason,
    LimitWatch,
    SandboxedProcess,
)
from annabelle.servers.kit import Result, StopSign, current_call, in_thread
from annabelle.servers.kit.files.atomic_write import make_stamp
from annabelle.servers.kit.files.workspace import Workspace
from annabelle.servers.kit.overflow import Overflow

HEAD_BYTES = 600_000
TAIL_BYTES = 400_000


class OutputBuffer:
    """Keeps the beginning and the end of a stream, at most a megabyte."""

    def __init__(self, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self.total = 0

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        pool = self._head_bytes - len(self._head)
        if pool > 0:
            self._head += data[:pool]
            data = data[pool:]
        if not data:
            return
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) >= self._tail_bytes:
            self._tail_size -= len(self._tail.popleft())

    def decode(self) -> str:
        """Return the kept text, with a note of how many bytes were left out."""
        tail = b"".join(self._tail)[-self._tail_bytes :]
        left_out = self.total - len(self._head) - len(tail)
        if left_out <= 0:
            return _decode(bytes(self._head) + tail)
        return f"{_decode(bytes(self._head))}\n… {left_out} bytes left out …\n{_decode(tail)}"


def shorten_middle(text: str, limit: int) -> str:
    """Keep the beginning and the end, where a program's result and error usually are."""
    if len(text) <= limit:
        return text
    head = limit * 3 // 5
    return f"{text[:head]}\n… {len(text) - limit} characters left out …\n{text[head - limit :]}"


def _decode(data: bytes) -> str:
    return data.decode("utf-8", errors="replace").replace("\x00", "\\x00")


MOST_OUTPUT_BYTES = 20_000_000
"""A program that writes more is ended."""

_CHUNK = 1 << 16
_DRAIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Outcome of a run. `exit_code` is None if the program was ended; `killed` says why."""

    exit_code: int | None
    stdout: str
    stderr: str
    seconds: float
    killed: KillReason | None = None

    @property
    def timed_out(self) -> bool:
        return self.killed == "time"


async def run_sandbox(
    backend: SandboxBackend, sandbox: SandboxSpec, seconds: float, disk: DiskQuota | None = None
) -> RunOutcome:
    """Run a program to its end. No process is left afterwards, even on cancellation."""
    started = time.monotonic()
    process = await SandboxedProcess.start(backend, sandbox)
    out, err = OutputBuffer(), OutputBuffer()
    readers = [
        asyncio.ensure_future(_record_stream(stream, tape))
        for stream, tape in ((process.stdout, out), (process.stderr, err))
    ]
    try:
        killed = await _wait_until_over(process, LimitWatch(process, disk), started + seconds, (out, err))
    finally:
        await process.kill()
        await _finish_readers(readers)
    code = None if killed else await process.wait()
    return RunOutcome(code, out.decode(), err.decode(), time.monotonic() - started, killed)


async def _wait_until_over(
    process: SandboxedProcess, watch: LimitWatch, deadline: float, tapes: tuple[OutputBuffer, OutputBuffer]
) -> KillReason | None:
    ending = asyncio.ensure_future(process.wait())
    started = told = time.monotonic()
    call = current_call()
    try:
        while True:
            now = time.monotonic()
            await asyncio.wait([ending], timeout=max(0.0, min(WATCH_SECONDS, deadline - now)))
            if ending.done():
                return None
            now = time.monotonic()
            if now >= deadline:
                return "time"
            if sum(tape.total for tape in tapes) > MOST_OUTPUT_BYTES:
                return "output"
            reason = await watch.check()
            if reason is not None:
                return reason
            if now - told >= 1.0:
                told = now
                await call.progress(round(now - started, 1), round(deadline - started, 1), "running")
    finally:
        ending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ending


async def _record_stream(stream: asyncio.StreamReader, buffer: OutputBuffer) -> None:
    """Read to the end: a process with full pipes does not end."""
    while chunk := await stream.read(_CHUNK):
        buffer.feed(chunk)


async def _finish_readers(readers: Sequence[asyncio.Future[None]]) -> None:
    _, late = await asyncio.wait(readers, timeout=_DRAIN_SECONDS)
    for reader in late:
        reader.cancel()


RESULTS = "Code/results"
MOST_LISTED = 50
MOST_KEPT = 20
_MOST_SEEN = 5_000
_MOST_BYTES = 52_428_800
_UNSEEN = ("__pycache__", "node_modules", ".cache", ".npm")

FolderSnapshot = Mapping[str, tuple[int, int]]
"""Path below the folder → modification time and size."""


@dataclass(frozen=True, slots=True)
class Artifacts:
    """Workspace paths of the files, and how many more were not listed or kept."""

    paths: tuple[str, ...] = ()
    left_out: int = 0


async def snapshot_folder(folder: Path) -> FolderSnapshot:
    """Snapshot of a folder, up to a bound. A larger folder is not compared at all."""

    def scan_files(stop: StopSign) -> FolderSnapshot:
        seen: dict[str, tuple[int, int]] = {}
        for path, status, _, _ in _iter_files(folder, stop):
            seen[path] = (status.st_mtime_ns, status.st_size)
            if len(seen) >= _MOST_SEEN:
                break
        return seen

    return await in_thread(scan_files)


async def list_changed(folder: Path, before: FolderSnapshot, shown: str) -> Artifacts:
    """List new and changed files of a workspace folder, with the caller's name for the folder."""
    new = _changed_paths(before, await snapshot_folder(folder))
    prefix = "" if shown in ("", ".") else f"{shown.rstrip('/')}/"
    return Artifacts(tuple(f"{prefix}{path}" for path in new[:MOST_LISTED]), max(0, len(new) - MOST_LISTED))


async def copy_changed(folder: Path, before: FolderSnapshot, workspace: Workspace) -> Artifacts:
    """Copy new and changed files of a private folder to the workspace. Skips what may not be written there."""
    new = _changed_paths(before, await snapshot_folder(folder))
    if not new:
        return Artifacts()
    target, paths = f"{RESULTS}/{make_stamp()}", list[str]()
    budget = _MOST_BYTES
    for path in new[:MOST_KEPT]:
        data = await in_thread(lambda stop, path=path, most=budget: _read(folder, path, most, stop))
        if data is None:
            continue
        parent, _, name = path.rpartition("/")
        with contextlib.suppress(AnnabelleError):
            place = await workspace.keep(f"{target}/{parent}" if parent else target, name, data)
            paths.append(place.path)
            budget -= len(data)
    return Artifacts(tuple(paths), len(new) - len(paths))


def _changed_paths(before: FolderSnapshot, after: FolderSnapshot) -> list[str]:
    if len(before) >= _MOST_SEEN:
        return []
    return sorted(path for path, mark in after.items() if before.get(path) != mark)


def _iter_files(folder: Path, stop: StopSign) -> Iterator[tuple[str, os.stat_result, str, int]]:
    """Iterate over regular files by descriptor: running code may replace a folder by a link at any moment."""
    with contextlib.suppress(OSError):
        for place, folders, files, descriptor in os.fwalk(folder, follow_symlinks=False):
            stop.check()
            folders[:] = sorted(name for name in folders if name not in _UNSEEN)
            for name in files:
                with contextlib.suppress(OSError, UnicodeEncodeError):
                    status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    path = os.path.relpath(os.path.join(place, name), folder)
                    path.encode()  # skip names that are not valid text
                    if stat.S_ISREG(status.st_mode):
                        yield path, status, name, descriptor


def _read(folder: Path, wanted: str, most: int, stop: StopSign) -> bytes | None:
    for path, status, name, descriptor in _iter_files(folder, stop):
        if path != wanted or status.st_size > most:
            continue
        with contextlib.suppress(OSError):
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=descriptor)
            with os.fdopen(opened, "rb") as file:
                if stat.S_ISREG(os.fstat(opened).st_mode):
                    return file.read(most)
    return None


_REASONS: dict[KillReason, str] = {
    "time": "it took longer than it may",
    "memory": "it used more memory than it may",
    "processes": "it started more processes than it may",
    "output": "it wrote more output than it may",
    "disk": "it wrote more files than it may",
    "closed": "its session was closed",
}


class RunReport(Result):
    """How a run went."""

    exit_code: int | None = Field(default=None, description="What the program ended with; null if it was ended")
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    killed: str | None = Field(default=None, description="Why it was ended: time, memory, processes, output or disk")
    duration_ms: int = 0
    artifacts: list[str] = Field(default=[], description="Files it made or changed, as paths in the workspace")
    artifacts_left_out: int = Field(default=0, description="More files it made that are not listed or kept")
    rest: list[str] = Field(default=[], description="Files with the whole output, where it was too long to show")

    def to_text(self) -> str:
        parts = [part for part in (self.stdout.rstrip("\n"), _with_label("stderr", self.stderr)) if part]
        if self.killed is not None:
            parts.append(f"[ended after {self.duration_ms} ms: {_describe_reason(self.killed)}]")
        elif self.exit_code:
            parts.append(f"[exit code {self.exit_code}]")
        if self.rest:
            parts.append(f"[the whole output is in {', '.join(self.rest)}]")
        if self.artifacts:
            more = f" and {self.artifacts_left_out} more" if self.artifacts_left_out else ""
            parts.append(f"[files: {', '.join(self.artifacts)}{more}]")
        elif self.artifacts_left_out:
            parts.append(f"[{self.artifacts_left_out} files were made that could not be kept]")
        return "\n".join(parts) or "[no output]"


async def build_report(outcome: RunOutcome, artifacts: Artifacts, overflow: Overflow, limit: int) -> RunReport:
    """Cut each stream to `limit` characters and write the whole output to a file."""
    rest: list[str] = []
    shown: list[str] = []
    for name, text in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        whole = await overflow.show_text(text, limit, f"{name}.txt")
        shown.append(shorten_middle(text, limit))
        rest += [whole.rest] if whole.rest is not None else []
    return RunReport(
        exit_code=outcome.exit_code,
        stdout=shown[0],
        stderr=shown[1],
        timed_out=outcome.timed_out,
        killed=outcome.killed,
        duration_ms=round(outcome.seconds * 1000),
        artifacts=list(artifacts.paths),
        artifacts_left_out=artifacts.left_out,
        rest=rest,
    )


def _describe_reason(killed: str) -> str:
    return next((sentence for reason, sentence in _REASONS.items() if reason == killed), killed)


def _with_label(name: str, text: str) -> str:
    return f"{name}:\n{text.rstrip()}" if text.strip() else ""
