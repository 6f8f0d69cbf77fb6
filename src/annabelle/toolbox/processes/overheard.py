"""What a process says beside its protocol, on its way into its log: without a secret of this home in it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from annabelle.core.redact import Redactor
from annabelle.toolbox.processes.launch import LOG_MAX_BYTES, Child, Launch, Launcher, open_log

_AT_ONCE: Final = 65_536
_LONGEST_LINE: Final = 65_536
_HELD_BACK: Final = 4_096
"""Of a line that is written in parts: no secret is longer, so none is cut in two."""


async def launch_overheard(launcher: Launcher, order: Launch, redact: Redactor) -> tuple[Child, Overheard]:
    """Start a process whose stderr is listened to for as long as it lives."""
    overheard = Overheard(order.log, redact)
    try:
        child = await launcher.launch(replace(order, stderr=overheard.mouth))
    except BaseException:
        overheard.close()
        raise
    finally:
        overheard.handed_over()
    child.exited.add_done_callback(lambda _: overheard.close())
    return child, overheard


class Overheard:
    """A pipe for a process's stderr. Our own servers mask what they log, but know their own secrets alone; what a
    library prints, a crash leaves or others say can only be masked here."""

    def __init__(self, path: Path, redact: Redactor) -> None:
        self._path, self._redact = path, redact
        self._ear, self.mouth = os.pipe()
        os.set_blocking(self._ear, False)
        self._log, self._written = open_log(path), 0
        self._line = b""
        self._over = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._ear, self._listen)

    def handed_over(self) -> None:
        """The process has its end now, and ours would keep the pipe open for ever."""
        os.close(self.mouth)

    async def end_of_words(self, seconds: float) -> None:
        """Wait until everything that was said is in the log, or for so long."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), seconds)

    def close(self) -> None:
        """The process is gone: take what is still in the pipe, whoever else may hold it open."""
        while not self._over.is_set() and self._listen():
            pass
        self._end()

    def _listen(self) -> bool:
        """Read once; whether there may be more now."""
        try:
            said = os.read(self._ear, _AT_ONCE)
        except BlockingIOError:
            return False
        if not said:
            self._end()
            return False
        *lines, self._line = (self._line + said).split(b"\n")
        if lines:
            self._write(self._masked(b"\n".join(lines) + b"\n"))
        if len(self._line) > _LONGEST_LINE:
            masked = self._masked(self._line)
            self._write(masked[:-_HELD_BACK])
            self._line = masked[-_HELD_BACK:]
        return True

    def _masked(self, said: bytes) -> bytes:
        return self._redact(said.decode(errors="surrogateescape")).encode(errors="surrogateescape")

    def _write(self, words: bytes) -> None:
        if self._written + len(words) > LOG_MAX_BYTES:
            os.close(self._log)
            self._log, self._written = open_log(self._path), 0
        self._written += len(words)
        with contextlib.suppress(OSError):  # a full disk must not end a server
            os.write(self._log, words)

    def _end(self) -> None:
        if self._over.is_set():
            return
        self._over.set()
        asyncio.get_running_loop().remove_reader(self._ear)
        if self._line:
            self._write(self._masked(self._line))
        os.close(self._ear)
        os.close(self._log)
