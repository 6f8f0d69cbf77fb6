"""One running hub per home: the lock, the listening socket, and run/hub.json."""

from __future__ import annotations

import errno
import json
import os
import socket
from datetime import datetime

from annabelle import __version__
from annabelle.core.errors import AlreadyRunning, OperatorMistake, StorageTrouble, explain_os_error
from annabelle.core.home import Home, write_atomically
from annabelle.store.file_lock import FileLock


def lock_home(home: Home) -> FileLock:
    lock = FileLock(home.hub_file)
    try:
        lock.acquire()
    except AlreadyRunning as error:
        raise AlreadyRunning(
            f"Annabelle already runs in {home.root}: {_describe_running_hub(home, error)}.",
            hint="Talk to that one, or stop it first with annabelle down.",
        ) from error
    return lock


def _describe_running_hub(home: Home, error: AlreadyRunning) -> str:
    try:
        known = json.loads(home.hub_file.read_text(encoding="utf-8"))
        return f"process {known['pid']} at {known['url']}"
    except (OSError, ValueError, KeyError, TypeError):
        # It holds the lock but does not listen yet.
        return error.message.rstrip(".")


LOOPBACK = "127.0.0.1"
_BACKLOG = 512


def bind_port(port: int) -> socket.socket:
    """A listening socket on loopback. Early clients wait until the hub answers.

    Listening is needed, because two hubs may bind one port, and the event loop hides which of them cannot listen.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((LOOPBACK, port))
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise OperatorMistake(
                f"Port {port} on {LOOPBACK} is taken by another program.",
                hint="Stop that program, or choose another port with ANNABELLE_PORT (0 takes a free one).",
            ) from error
        raise OperatorMistake(
            f"Port {port} on {LOOPBACK} can not be used: {error.strerror}.",
            hint="Choose another port with ANNABELLE_PORT.",
        ) from error
    return sock


def hub_address(sock: socket.socket) -> str:
    return f"http://{LOOPBACK}:{sock.getsockname()[1]}"


def write_run_file(home: Home, url: str, started: datetime) -> None:
    """Write the hub's address. Call it when the hub is ready."""
    known = {"pid": os.getpid(), "url": url, "version": __version__, "started": started.isoformat()}
    hint = "Free space or fix its permissions: no command finds the hub without it."
    with explain_os_error(StorageTrouble, f"{home.hub_file} can not be written", hint=hint):
        write_atomically(home.hub_file, json.dumps(known) + "\n")


def remove_run_file(home: Home) -> None:
    home.hub_file.unlink(missing_ok=True)
