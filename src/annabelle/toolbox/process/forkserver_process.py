"""Starts the fork server. Standard library only, so that the hub can start it before its own imports."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import annabelle
from annabelle.toolbox.process import control_socket

_PACKAGE_PARENT = str(Path(annabelle.__file__).resolve().parent.parent)


def python_command(module: str, *arguments: str) -> list[str]:
    # -P keeps the working folder out of the import path: nothing lying there may be run.
    return [sys.executable, "-P", "-m", module, *arguments]


def python_environment(python_path: Sequence[str]) -> dict[str, str]:
    # The fork server must be single-threaded when it forks, and numpy would start threads.
    return {"PYTHONPATH": os.pathsep.join([_PACKAGE_PARENT, *python_path]), "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class ForkServerProcess:
    """A fork server that is importing its modules."""

    process: subprocess.Popen[bytes]
    control: socket.socket


def can_use_forkserver() -> bool:
    """Whether this system can fork servers and watch them without races."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
        os.close(os.memfd_create("probe"))
    except OSError:
        return False
    return True


def start_forkserver(preload: Sequence[str], python_path: Sequence[str], log: Path) -> ForkServerProcess:
    """Start the process and tell it what to import, without waiting."""
    log.parent.mkdir(parents=True, exist_ok=True)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, log.open("ab") as errors:
        try:
            process = subprocess.Popen(
                python_command("annabelle.toolbox.process.forkserver", str(theirs.fileno()), str(os.getpid())),
                env=python_environment(python_path),
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
    control_socket.send(ours, {"op": "preload", "modules": list(preload)})
    return ForkServerProcess(process, ours)
