"""Starts and stops the hub from the terminal, in the background or for one command."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx2 as httpx

from annabelle.cli.hub_client import HubFile, read_hub_file
from annabelle.cli.spinner import Spinner
from annabelle.core.errors import (
    MORE_MEMORY,
    AlreadyRunning,
    AnnabelleError,
    OperatorMistake,
    StorageTrouble,
    Unavailable,
)
from annabelle.core.home import HUB_ARGUMENTS, Home
from annabelle.core.network_access import trust_store
from annabelle.core.settings import load_settings
from annabelle.toolbox.process import kernel

START_SECONDS = 90.0
HEALTH_SECONDS = 5.0
POLL_SECONDS = 0.05
_CRASHES = (signal.SIGABRT, signal.SIGBUS, signal.SIGKILL, signal.SIGSEGV)
LEAST_FREE_BYTES = 3_000_000
"""What a new home takes, and a little to work with."""


@dataclass(frozen=True, slots=True)
class HubProcess:
    """A hub that this command started."""

    process: subprocess.Popen[bytes]
    output: Path
    output_start: int

    def read_output(self) -> str:
        """The hub's output since its start, to explain an early exit."""
        with contextlib.suppress(OSError), self.output.open("rb") as file:
            file.seek(self.output_start)
            return file.read()[-4000:].decode("utf-8", errors="replace").strip()
        return ""


def running_hub(home: Home) -> HubFile | None:
    """This home's hub, if it is alive and answers. One that is stopping takes no more messages: its end is awaited."""
    note = read_hub_file(home)
    phase = None if note is None else _read_phase(note.url, HEALTH_SECONDS)
    if note is None or phase != "stopping":
        return note if phase is not None else None
    deadline = time.monotonic() + START_SECONDS
    while is_alive(note.pid) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return running_hub(home)


def answers(url: str, seconds: float | None = None) -> bool:
    """Whether a hub answers there within this time, five seconds by default."""
    return _read_phase(url, seconds or HEALTH_SECONDS) is not None


def _read_phase(url: str, seconds: float) -> str | None:
    """Whether the hub there is starting, ready or stopping; None where nothing answers."""
    try:
        answer = httpx.get(f"{url}/health", timeout=seconds, verify=trust_store(url), trust_env=False)
    except httpx.HTTPError:
        return None
    with contextlib.suppress(ValueError, LookupError, TypeError):
        return str(answer.json()["phase"]) if answer.is_success else None
    return ""


def wait_for_other_hub(home: Home, refusal: AlreadyRunning) -> HubFile:
    """Wait for a hub that was started at the same time as ours."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        note = running_hub(home)
        if note is not None:
            return note
        time.sleep(POLL_SECONDS)
    raise refusal


def start_hub(home: Home, *, die_with_parent: bool) -> HubProcess:
    """Start a hub that ends with this process (`die_with_parent`) or runs on in its own session."""
    home.prepare()
    if shutil.disk_usage(home.root).free < LEAST_FREE_BYTES:
        # The hub could not even write why it ends.
        raise StorageTrouble(f"The disk of {home.root} is full.", hint="Free some space, then start Annabelle again.")
    words = home.logs / "hub.out"
    with words.open("ab") as output:
        start = output.tell()
        process = subprocess.Popen(
            [sys.executable, *HUB_ARGUMENTS],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=home.root,
            # In its own session, Ctrl-C in the chat does not reach it.
            start_new_session=True,
            # Even if this process dies by SIGKILL. Linux only.
            preexec_fn=partial(kernel.die_with_parent, os.getpid(), signal.SIGTERM) if die_with_parent else None,
        )
    return HubProcess(process, words, start)


def wait_until_ready(home: Home, hub: HubProcess, seconds: float = START_SECONDS) -> HubFile:
    """Wait until the hub answers; if it exits, raise its own message and exit code."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if hub.process.poll() is not None:
            raise _failure(hub)
        note = read_hub_file(home)
        if note is not None and note.pid == hub.process.pid and answers(note.url):
            return note
        time.sleep(POLL_SECONDS)
    stop_process(hub.process.pid, grace=5.0, reap=hub.process)
    raise Unavailable(f"Annabelle was not ready after {seconds:.0f} seconds.", hint="Look into its log: annabelle logs")


def _failure(hub: HubProcess) -> AnnabelleError:
    code = hub.process.returncode
    kinds: dict[int, type[AnnabelleError]] = {
        OperatorMistake.exit_code: OperatorMistake,
        StorageTrouble.exit_code: StorageTrouble,
        AlreadyRunning.exit_code: AlreadyRunning,
    }
    if -code in _CRASHES:
        how = f"Annabelle was ended by {signal.Signals(-code).name} while it started"
        return OperatorMistake(
            f"{how}, mostly a sign of too little memory here.", hint=f"{MORE_MEMORY} See {hub.output}."
        )
    words = hub.read_output()
    kind = kinds.get(code)
    if kind is None or not words:
        return Unavailable(f"Annabelle ended while it started (exit code {code}).", hint=f"Look into {hub.output}.")
    # The hub's last line of output is its error message.
    return kind(words.splitlines()[-1])


def stop_hub(home: Home, grace: float) -> bool:
    """Stop the hub of this home; False if none runs. It is killed after the grace period, which loses nothing."""
    note = read_hub_file(home)
    if note is None or not (answers(note.url) or is_hub(note.pid)):
        return False
    stop_process(note.pid, grace)
    return True


def is_hub(pid: int) -> bool:
    """Whether the process is a hub, since the pid may have been reused."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return b"annabelle.hub" in Path(f"/proc/{pid}/cmdline").read_bytes()
        return False
    shown = subprocess.run(["ps", "-p", str(pid), "-o", "command="], capture_output=True, check=False, timeout=5)
    return b"annabelle.hub" in shown.stdout


def stop_process(pid: int, grace: float, reap: subprocess.Popen[bytes] | None = None) -> None:
    """Send SIGTERM, and SIGKILL after the grace period."""
    for sign, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 10.0)):
        if reap is not None and reap.poll() is not None:
            return  # the pid may have been reused
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sign)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if reap is not None:
                reap.poll()
            if not is_alive(pid):
                return
            time.sleep(POLL_SECONDS)


def is_alive(pid: int) -> bool:
    """Whether a process still runs; zombies do not count."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return False


EXTRA_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class HubSession:
    """The hub in use; `own` is set if this command started it."""

    note: HubFile
    own: HubProcess | None


@contextmanager
def temporary_hub(home: Home, meanwhile: Callable[[], None] | None = None) -> Generator[HubSession]:
    """Use the running hub, or start one and stop it at the end. `meanwhile` runs during the start."""
    settings = load_settings(home)
    note = running_hub(home)
    if note is not None:
        yield HubSession(note, None)
        return
    own = start_hub(home, die_with_parent=True)
    try:
        with Spinner("Starting Annabelle"):
            if meanwhile is not None:
                meanwhile()
            try:
                note = wait_until_ready(home, own)
            except AlreadyRunning as refusal:
                note = wait_for_other_hub(home, refusal)
        yield HubSession(note, own)
    finally:
        with Spinner("Stopping Annabelle"):
            stop_process(own.process.pid, settings.annabelle_shutdown_grace_seconds + EXTRA_SECONDS, reap=own.process)
