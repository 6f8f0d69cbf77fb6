"""Ends what a test run leaves behind when it is cut off: killed, out of time, or stuck in a test that timed out.

`Reaper.start()` starts this file as a small process beside a test run, joined by a pipe. When the pipe closes, or a
test stays far beyond its bound, every process that carries the run's mark in its environment, or descends from one
that does, is killed. The folders of its database servers are removed.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil

VARIABLE = "TEST_RUN_MARK"
FOLDER = "annabelle-pg-"
"""What the name of a database server's folder begins with; the run's mark follows."""
IN_MEMORY = "/dev/shm"


def environment_mark() -> dict[str, str]:
    """The mark, for a process that does not inherit this one's environment."""
    return {VARIABLE: os.environ[VARIABLE]} if VARIABLE in os.environ else {}


class Reaper:
    """The run's end of the pipe."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Mark this process's environment, which what it starts inherits, and start to watch."""
        os.environ[VARIABLE] = mark = uuid.uuid4().hex
        command = [sys.executable, "-E", __file__, mark, str(os.getpid())]
        # A session of its own: Ctrl-C in the terminal ends the run, and then this process has work to do.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def expect_within(self, seconds: float | None) -> None:
        """Kill the run, too, unless this is called again within so many seconds. None takes the bound away."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(f"{seconds or 0}\n".encode())
                self._process.stdin.flush()

    def stop(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()


def watch(mark: str, run: int) -> None:
    """Until the pipe closes or a test is far over its time."""
    ends = float("inf")
    while True:
        wait = None if ends == float("inf") else max(0.0, ends - time.monotonic())
        ready, _, _ = select.select([sys.stdin.fileno()], [], [], wait)
        if not ready:
            kill_marked(mark, also=run)
            return
        lines = os.read(sys.stdin.fileno(), 4096)
        if not lines:
            kill_marked(mark)
            return
        allowed = float(lines.split()[-1])
        ends = time.monotonic() + allowed if allowed else float("inf")


def kill_marked(mark: str, also: int | None = None) -> None:
    """Kill every process with this mark and its descendants, until none is found: one may just be starting another."""
    if also is not None:
        with contextlib.suppress(psutil.Error):
            victim = psutil.Process(also)
            family = victim.children(recursive=True)
            _kill([victim, *family])
    while marked := [process for process in psutil.process_iter() if _has_mark(process, mark)]:
        _kill([child for process in marked for child in _children(process)] + marked)
    for place in ("/tmp", IN_MEMORY):
        for folder in Path(place).glob(f"{FOLDER}{mark[:8]}-*"):
            shutil.rmtree(folder, ignore_errors=True)


def _has_mark(process: psutil.Process, mark: str) -> bool:
    try:
        living = process.status() != psutil.STATUS_ZOMBIE
        return living and process.pid != os.getpid() and process.environ().get(VARIABLE) == mark
    except (psutil.Error, OSError):
        return False


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        if process.pid != os.getpid():
            with contextlib.suppress(psutil.Error):
                process.kill()
    psutil.wait_procs(processes, timeout=1)


if __name__ == "__main__":
    watch(sys.argv[1], int(sys.argv[2]))
