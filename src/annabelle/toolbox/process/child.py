"""What a forked process becomes: a built-in server, or a reaper that runs an external server and kills all it leaves
behind (I-25).
"""

from __future__ import annotations

import gc
import importlib
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import NoReturn

from annabelle.toolbox.process import kernel
from annabelle.toolbox.process.child_config import ChildConfig, read_config


def become_server(module: str, name: str, descriptors: tuple[int, int, int, int], parent: int) -> NoReturn:
    """Runs in the forked child. `descriptors` are its stdin, stdout, log and config."""
    code = 1
    try:
        kernel.die_with_parent(parent, signal.SIGKILL)
        kernel.reset_signals()
        environment = read_config(descriptors[3]).environment
        for standard, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, standard)
        kernel.close_all_but_standard()
        kernel.set_process_name(name)
        code = run_server(module, environment)
    except BaseException:  # noqa: BLE001  the end of a process: whatever it was goes to the server's log
        traceback.print_exc()
    finally:
        flush_and_exit(code)


def run_server(module: str, environment: dict[str, str]) -> int:
    """Replace the environment with exactly this one and run the server's main. Returns its exit code."""
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    random.seed()
    gc.enable()
    sys.argv = [module]
    try:
        importlib.import_module(module).main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return 130
    except BaseException:  # noqa: BLE001  the end of a process: whatever it was goes to the server's log
        traceback.print_exc()
        return 1
    return 0


def flush_and_exit(code: int) -> NoReturn:
    """Exit without running exit handlers: they belong to the fork server, not to this process."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue  # the other end is closed
    os._exit(code)


_NOT_FOUND = 127
_GRACE_SECONDS = 1.0


class _ReaperStopped(BaseException):
    """Raised by the signal handler to leave the wait."""


def become_reaper(name: str, descriptors: tuple[int, int, int, int], parent: int) -> NoReturn:
    """Runs in the forked process. `descriptors` are the server's stdin, stdout, log and config."""
    code = 1
    try:
        kernel.die_with_parent(parent, signal.SIGTERM)
        kernel.reset_signals()
        config = read_config(descriptors[3])
        for standard, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, standard)
        code = run_under_reaper(name, lambda: become_external(config))
    finally:
        flush_and_exit(code)


def run_under_reaper(name: str, become: Callable[[], NoReturn]) -> int:
    """Run the server (`become`) until it ends, then kill all its descendants. Returns the server's exit code."""
    kernel.close_all_but_standard()
    if os.getpgrp() != os.getpid():
        os.setsid()
    kernel.adopt_orphans()
    kernel.set_process_name(f"warden-{name}")
    code = 128 + signal.SIGTERM
    own = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    server = os.fork()
    if server == 0:
        kernel.die_with_parent(own, signal.SIGKILL)
        kernel.reset_signals()
        become()
    # Only the server may hold its pipes, otherwise the hub would not see them close.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    try:
        signal.signal(signal.SIGTERM, _on_stop_signal)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        code = _wait_for(server)
    except _ReaperStopped:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _ask_to_end(server)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kernel.kill_descendants()
    return code


def _ask_to_end(server: int) -> None:
    """Give the server a moment to close its files; it is killed afterwards."""
    kernel.kill(server, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    while kernel.reap() and time.monotonic() < deadline:
        time.sleep(0.01)


def _on_stop_signal(number: int, frame: object) -> None:
    raise _ReaperStopped


def _wait_for(server: int) -> int:
    while True:
        pid, status = os.waitpid(-1, 0)  # orphans are reaped on the way
        if pid == server:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def become_external(config: ChildConfig) -> NoReturn:
    """Turn into the user's command, in its folder and with its environment."""
    try:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.chdir(config.folder)
        os.execvpe(config.argv[0], list(config.argv), config.environment)
    except OSError as error:
        sys.stderr.write(f"{config.argv[0]} could not be started: {error.strerror}\n")
    finally:
        flush_and_exit(_NOT_FOUND)


def main() -> None:
    """The reaper without a fork server: `python -m annabelle.toolbox.process.child NAME CONFIG PARENT`."""
    name, descriptor, parent = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    kernel.die_with_parent(parent, signal.SIGTERM)
    config = read_config(descriptor)
    sys.exit(run_under_reaper(name, lambda: become_external(config)))


if __name__ == "__main__":
    main()
