"""Writes a line to a file each time it acts, so that a test can count effects."""

import os
import signal


def note(word: object) -> None:
    descriptor = os.open(os.environ["WITNESS_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{word}\n".encode())
    os.close(descriptor)


def die_once(marker: object) -> None:
    """Kill this process, but only for the first that finds the marker."""
    try:
        os.unlink(str(marker))
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
