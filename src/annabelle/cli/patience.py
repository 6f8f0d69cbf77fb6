"""A sign of life on stderr while something takes its time; nothing where nobody looks."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Self

_COUNT_FROM_SECONDS = 3
_ERASE = "\r\x1b[K"


def watched() -> bool:
    """Whether a person sees stderr and wants words on it."""
    return sys.stderr.isatty() and "--json" not in sys.argv


def say(what: str) -> None:
    """Say what is being done, on a line that the next words replace."""
    if watched():
        sys.stderr.write(f"{_ERASE}{what} …")
        sys.stderr.flush()


def hush() -> None:
    """Take the line away again."""
    if watched():
        sys.stderr.write(_ERASE)
        sys.stderr.flush()


class Patience:
    """While inside, says what is being done, and after a few seconds for how long already."""

    def __init__(self, what: str) -> None:
        self._what, self._over = what, threading.Event()
        self._counting = threading.Thread(target=self._count, daemon=True)

    def __enter__(self) -> Self:
        say(self._what)
        if watched():
            self._counting.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._counting.is_alive():
            self._counting.join(1.0)
        hush()

    def _count(self) -> None:
        began = time.monotonic()
        while not self._over.wait(1.0):
            passed = time.monotonic() - began
            if passed >= _COUNT_FROM_SECONDS:
                say(f"{self._what} ({passed:.0f} s)")
