"""Copies a process's stderr into its log, with the secrets of this home masked."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from annabelle.core.secrets.redactor import Redactor
from annabelle.toolbox.process.launcher import LOG_MAX_BYTES, ChildProcess, LaunchRequest, ProcessLauncher, open_log

_AT_ONCE: Final = 65_536
_LONGEST_LINE: Final = 65_536
_HELD_BACK: Final = 4_096
"""Bytes of a line that is written in parts: no secret is longer, so none is cut in two."""


async def launch_with_capture(
    launcher: ProcessLauncher, request: LaunchRequest, redact: Redactor
) -> tuple[ChildProcess, StderrCapture]:
    """Start a process and capture its stderr until it ends."""
    capture = StderrCapture(request.log, redact)
    try:
        child = await launcher.launch(replace(request, stderr=capture.write_end))
    except BaseException:
        capture.close()
        raise
    finally:
        capture.close_write_end()
    child.exited.add_done_callback(lambda _: capture.close())
    return child, capture


class StderrCapture:
    """A pipe for a process's stderr.

    Our own servers mask what they log but know only their own secrets. What a library, a crash or an external server
    prints can only be masked here.
    """

    def __init__(self, path: Path, redact: Redactor) -> None:
        self._path, self._redact = path, redact
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._log, self._written = open_log(path), 0
        self._line = b""
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._read_end, self._read_once)

    def close_write_end(self) -> None:
        """The process has its own copy; ours would keep the pipe open forever."""
        os.close(self.write_end)

    async def wait_drained(self, seconds: float) -> None:
        """Wait until all output is in the log, at most `seconds`."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)

    def close(self) -> None:
        """The process is gone: read what is left, even if another process holds the pipe open."""
        while not self._ended.is_set() and self._read_once():
            pass
        self._end()

    def _read_once(self) -> bool:
        """Read once. Returns whether there may be more."""
        try:
            data = os.read(self._read_end, _AT_ONCE)
        except BlockingIOError:
            return False
        if not data:
            self._end()
            return False
        *lines, self._line = (self._line + data).split(b"\n")
        if lines:
            self._write(self._masked(b"\n".join(lines) + b"\n"))
        if len(self._line) > _LONGEST_LINE:
            masked = self._masked(self._line)
            self._write(masked[:-_HELD_BACK])
            self._line = masked[-_HELD_BACK:]
        return True

    def _masked(self, data: bytes) -> bytes:
        return self._redact(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")

    def _write(self, data: bytes) -> None:
        if self._written + len(data) > LOG_MAX_BYTES:
            os.close(self._log)
            self._log, self._written = open_log(self._path), 0
        self._written += len(data)
        with contextlib.suppress(OSError):  # a full disk must not end a server
            os.write(self._log, data)

    def _end(self) -> None:
        if self._ended.is_set():
            return
        self._ended.set()
        asyncio.get_running_loop().remove_reader(self._read_end)
        if self._line:
            self._write(self._masked(self._line))
        os.close(self._read_end)
        os.close(self._log)
