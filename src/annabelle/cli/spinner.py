"""A status line on stderr during long operations, if a person is watching."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Self

from annabelle.core.home import Home

_COUNT_FROM_SECONDS = 3
_ERASE = "\r\x1b[K"


def is_watched() -> bool:
    """Whether stderr is a terminal and JSON output is off."""
    return sys.stderr.isatty() and "--json" not in sys.argv


def show_status(what: str) -> None:
    """Show what is being done on a line that the next output replaces."""
    if is_watched():
        sys.stderr.write(f"{_ERASE}{what} …")
        sys.stderr.flush()


def clear_status() -> None:
    if is_watched():
        sys.stderr.write(_ERASE)
        sys.stderr.flush()


def tell(text: str) -> None:
    """Tell a person something on stderr, above the status line. Machines read the result only."""
    if "--json" not in sys.argv:
        clear_status()
        sys.stderr.write(f"· {text}\n")
        sys.stderr.flush()


class Spinner:
    """Shows what is being done, and after a few seconds for how long."""

    def __init__(self, what: str) -> None:
        self._what, self._over = what, threading.Event()
        self._counting = threading.Thread(target=self._count, daemon=True)

    def __enter__(self) -> Self:
        show_status(self._what)
        if is_watched():
            self._counting.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._counting.is_alive():
            self._counting.join(1.0)
        clear_status()

    def _count(self) -> None:
        began = time.monotonic()
        while not self._over.wait(1.0):
            passed = time.monotonic() - began
            if passed >= _COUNT_FROM_SECONDS:
                show_status(f"{self._what} ({passed:.0f} s)")


def first_words() -> None:
    """Announce a start, unless the hub's file in the home shows that one runs."""
    if not Home.from_environment().hub_file.exists():
        show_status("Starting Annabelle")
