"""One writer at a time in the folder of cached vectors, over all processes."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

LOCK_SECONDS = 5.0
_LOOK_SECONDS = 0.005


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Hold the folder; OSError when another process does not let go of it in time. Not for the event loop."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        give_up = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    raise
                if time.monotonic() > give_up:
                    raise OSError(errno.EBUSY, "Another process does not let go of it", str(folder)) from error
            time.sleep(_LOOK_SECONDS)
        yield
    finally:
        os.close(descriptor)
