"""`annabelle` as a person or a script runs it: a process with an environment of its own, or a real terminal."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from annabelle.core.home import Home
from support.few_servers import FEW_SERVERS
from support.reaper import environment_mark
from support.timing import product_bounds, seconds
from support.warm_process import COMMAND, TEMPLATE, WarmProcess, can_fork, own_terminal

ANNABELLE = Path(sys.executable).parent / "annabelle"
PATIENCE = 60.0


def environment(home: Home, model_url: str = "http://127.0.0.1:9/v1", **more: str) -> dict[str, str]:
    """What `annabelle` runs with: this home, any free port, the scripted model."""
    known = {
        "PATH": os.environ["PATH"],
        "HOME": str(home.root.parent),
        "TERM": "xterm",
        "ANNABELLE_HOME": str(home.root),
        "ANNABELLE_PORT": "0",
        "THINKER_PORT": "0",
        "THINKER_WARM_SPARE": "false",
        "THINKER_LLM_PROVIDER": "compatible",
        "COMPATIBLE_BASE_URL": model_url,
        "COMPATIBLE_MODEL": "scripted",
        "RETRY_IMMEDIATE_SECONDS": "0.05",
        "RETRY_BASE_SECONDS": "0.1",
        **FEW_SERVERS,
        **product_bounds(),
        **environment_mark(),
    }
    if "PYTHONPATH" in os.environ:
        known["PYTHONPATH"] = os.environ["PYTHONPATH"]
    return known | more


def start(known: dict[str, str], *arguments: str, stdin: str = "") -> subprocess.Popen[str] | WarmProcess:
    """One command, its output read through pipes."""
    if can_fork(known):
        return TEMPLATE.spawn(COMMAND, known, arguments, stdin)
    with tempfile.TemporaryFile("w+") as file:
        file.write(stdin)
        file.seek(0)
        return subprocess.Popen(
            [ANNABELLE, *arguments], env=known, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )


def run(known: dict[str, str], *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """One command to its end."""
    process = start(known, *arguments, stdin=stdin)
    out, err = process.communicate(timeout=seconds(2 * PATIENCE))
    return subprocess.CompletedProcess(["annabelle", *arguments], process.returncode or 0, out, err)


@contextlib.contextmanager
def started_by_up(folder: Path, model_url: str) -> Iterator[dict[str, str]]:
    """A hub that `annabelle up` starts, for tests to which it matters what a hub was started with.

    Nothing of it is forked: what a process was started with is read from the system.
    """
    known = environment(Home(folder / "home"), model_url)
    started = subprocess.run([ANNABELLE, "up"], env=known, capture_output=True, timeout=seconds(2 * PATIENCE))
    assert started.returncode == 0, started.stderr
    yield known
    assert run(known, "down").returncode == 0


def json_only(text: str) -> Any:
    """The one JSON document a text is; anything beside it is a mistake."""
    value, end = json.JSONDecoder().raw_decode(text)
    assert text[end:] == "\n", text
    return value


def hub_pid(known: dict[str, str]) -> int:
    return json.loads((Path(known["ANNABELLE_HOME"]) / "run" / "hub.json").read_text())["pid"]


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def wait_until(look: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + seconds(PATIENCE)
    while not look():
        assert time.monotonic() < deadline, f"{what} did not happen within {PATIENCE:g} s"
        time.sleep(0.02)


class Terminal:
    """A command on a pseudo-terminal: keys go in, what the screen was sent comes out."""

    def __init__(self, known: dict[str, str], *arguments: str, columns: int = 80, rows: int = 24) -> None:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

        self.process: subprocess.Popen[bytes] | WarmProcess
        if can_fork(known):
            self.process = TEMPLATE.fork(COMMAND, known, [slave, slave, slave], arguments)
        else:
            self.process = subprocess.Popen(
                [ANNABELLE, *arguments], env=known, stdin=slave, stdout=slave, stderr=slave, preexec_fn=own_terminal
            )
        os.close(slave)
        self._master = master
        self.seen = ""

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def press(self, keys: str) -> None:
        """Type once the command waits for it: a signal between a prompt and the wait behind it would be overheard."""
        wait_until(lambda: psutil.Process(self.process.pid).status() == psutil.STATUS_SLEEPING, "a command that waits")
        self.type(keys)

    def expect(self, pattern: str) -> str:
        """Wait until the screen has shown this, behind everything expected before; what came up to its end."""
        deadline = time.monotonic() + seconds(PATIENCE)
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < deadline, f"{pattern!r} was not shown, but: {self.seen!r}"
            assert self._read(), f"the command ended without {pattern!r}: {self.seen!r}"
        shown, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return shown

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], 0.1)
        if not ready:
            return self.process.poll() is None
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side is closed
            return False
        self.seen += data.decode("utf-8", errors="replace")
        return bool(data)

    def wait(self) -> int:
        """Read the rest, and the exit code."""
        deadline = time.monotonic() + seconds(PATIENCE)
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"the command did not end: {self.seen!r}"
            self._read()
        while self._read():
            pass
        return self.process.wait()

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self.process.poll() is None:
                os.kill(self.process.pid, signal.SIGTERM)
                try:
                    self.process.wait(seconds(PATIENCE))
                except subprocess.TimeoutExpired:
                    self.process.kill()
        self.process.wait()
        os.close(self._master)
