"""The nursery's process, started as early as one likes: its imports then overlap with the hub's own.

This module imports only the standard library, so that the hub can start the nursery before anything heavy.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from annabelle.toolbox.nursery import talk
from annabelle.toolbox.processes.python import command, environment


@dataclass(frozen=True, slots=True)
class WarmNursery:
    """A nursery that has been told what to import and is doing so."""

    process: subprocess.Popen[bytes]
    control: socket.socket


def nursery_possible() -> bool:
    """Whether this system can fork servers and watch them without races."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
        os.close(os.memfd_create("probe"))
    except OSError:
        return False
    return True


def start_nursery(preload: Sequence[str], python_path: Sequence[str], log: Path) -> WarmNursery:
    """Start the process and tell it what to import. It does not wait for anything."""
    log.parent.mkdir(parents=True, exist_ok=True)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, log.open("ab") as errors:
        try:
            process = subprocess.Popen(
                command("annabelle.toolbox.nursery", str(theirs.fileno()), str(os.getpid())),
                env=environment(python_path),
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                pass_fds=(theirs.fileno(),),
                cwd="/",
                start_new_session=True,  # Ctrl-C in the terminal must not reach the servers before the hub has drained
            )
        except BaseException:
            ours.close()
            raise
    ours.setblocking(False)
    talk.send(ours, {"op": "preload", "modules": list(preload)})
    return WarmNursery(process, ours)
