"""Stands over one external server and sees that it, and everything it ever started, ends with it (I-25).

The warden adopts the server's orphans. When the server ends, or the hub or the nursery does, it kills whatever is left
below it. Killed itself, it takes the server along, and the nursery above it adopts and kills the rest.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from annabelle.toolbox.nursery import kernel
from annabelle.toolbox.nursery.child import flush_and_leave
from annabelle.toolbox.nursery.parcel import Parcel, unwrap

_NOT_FOUND = 127
_GRACE_SECONDS = 1.0


class _Ended(BaseException):
    """Raised by the signal handler to leave the wait."""


def become_warden(name: str, descriptors: tuple[int, int, int, int], parent: int) -> NoReturn:
    """Runs in the process forked from the nursery. `descriptors` are the server's input, output, log and parcel."""
    code = 1
    try:
        kernel.die_with_parent(parent, signal.SIGTERM)
        kernel.reset_signals()
        parcel = unwrap(descriptors[3])
        for standard, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, standard)
        code = guard(name, lambda: become_external(parcel))
    finally:
        flush_and_leave(code)


def guard(name: str, become: Callable[[], NoReturn]) -> int:
    """Run the server (`become`) until it ends, then end everything below; the server's exit code."""
    kernel.close_all_but_standard()
    if os.getpgrp() != os.getpid():
        os.setsid()
    kernel.adopt_orphans()
    kernel.show_name(f"warden-{name}")
    code = 128 + signal.SIGTERM
    own = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    server = os.fork()
    if server == 0:
        kernel.die_with_parent(own, signal.SIGKILL)
        kernel.reset_signals()
        become()
    # Its pipes belong to the server alone, or nobody would ever see them close.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    try:
        signal.signal(signal.SIGTERM, _leave)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        code = _wait_for(server)
    except _Ended:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _ask_to_end(server)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kernel.kill_everything_below()
    return code


def _ask_to_end(server: int) -> None:
    """A moment for the server to close its own files; what does not use it is killed right after."""
    kernel.kill(server, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    while kernel.reap() and time.monotonic() < deadline:
        time.sleep(0.01)


def _leave(number: int, frame: object) -> None:
    raise _Ended


def _wait_for(server: int) -> int:
    while True:
        pid, status = os.waitpid(-1, 0)  # orphans are reaped on the way
        if pid == server:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def become_external(parcel: Parcel) -> NoReturn:
    """Turn into the user's command, in its folder and with its environment."""
    try:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.chdir(parcel.folder)
        os.execvpe(parcel.argv[0], list(parcel.argv), parcel.environment)  # noqa: S606  argv only, never a shell
    except OSError as error:
        sys.stderr.write(f"{parcel.argv[0]} could not be started: {error.strerror}\n")
    finally:
        flush_and_leave(_NOT_FOUND)


def main() -> None:
    """Started alone, where there is no nursery: `python -m annabelle.toolbox.nursery.warden NAME PARCEL PARENT`."""
    name, descriptor, parent = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    kernel.die_with_parent(parent, signal.SIGTERM)
    parcel = unwrap(descriptor)
    sys.exit(guard(name, lambda: become_external(parcel)))


if __name__ == "__main__":
    main()
