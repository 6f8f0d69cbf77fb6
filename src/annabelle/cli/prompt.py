"""The line a person types into, with history and line editing where the system has readline."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

try:
    import readline
except ImportError:  # a Python built without it still chats
    readline = None
try:
    import termios
except ImportError:  # not on every system
    termios = None

HISTORY_LINES = 1000


@dataclass(slots=True)
class Prompt:
    """Reads lines; remembers them over sessions, for the owner's eyes only."""

    history: Path
    forgotten: Path | None = None
    """Grows when something is forgotten: what this process still holds is not written back then."""
    text: str = "› "
    _forgotten_bytes: int = 0

    def open(self) -> None:
        if readline is None:
            return
        self._forgotten_bytes = _size(self.forgotten)
        readline.set_history_length(HISTORY_LINES)
        with contextlib.suppress(OSError):
            readline.read_history_file(self.history)

    def close(self) -> None:
        if readline is None or _size(self.forgotten) != self._forgotten_bytes:
            return
        with contextlib.suppress(OSError):
            os.close(os.open(self.history, os.O_WRONLY | os.O_CREAT, 0o600))
            readline.write_history_file(self.history)

    def read(self) -> str | None:
        """The next line; None at the end of input. Ctrl-C raises KeyboardInterrupt."""
        try:
            return input(self.text)
        except EOFError:
            return None


def read_answer(question: str) -> str | None:
    """What a person answers; None when they press Ctrl-C or Ctrl-D. It is no line of the chat's history.

    What was typed before the question was shown was not meant for it, and is dropped.
    """
    if termios is not None:
        with contextlib.suppress(OSError, ValueError, termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    if readline is not None:
        readline.set_auto_history(False)
    try:
        return input(question)
    except (EOFError, KeyboardInterrupt):
        sys.stdout.write("\n")
        return None
    finally:
        if readline is not None:
            readline.set_auto_history(True)


def _size(path: Path | None) -> int:
    try:
        return 0 if path is None else path.stat().st_size
    except OSError:
        return 0
