"""Reads what a person types: chat lines with history, answers, secrets, and text from an editor."""

from __future__ import annotations

import contextlib
import getpass
import os
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import typer

from annabelle.core.errors import CallerMistake

try:
    import readline
except ImportError:  # chat works without it
    readline = None
try:
    import termios
except ImportError:  # not on every system
    termios = None

HISTORY_LINES = 1000


@dataclass(slots=True)
class LinePrompt:
    """Reads lines and keeps their history in a file only the owner can read."""

    history: Path
    forgotten: Path | None = None
    """Grows when something is forgotten; then this process must not write its history back."""
    completions: Sequence[str] = ()
    """Beginnings of lines that Tab completes."""
    text: str = "› "
    _forgotten_bytes: int = 0
    _waits: bool = False
    _unshown: list[str] = field(default_factory=list[str])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self) -> None:
        if readline is None:
            return
        self._forgotten_bytes = _file_size(self.forgotten)
        readline.set_history_length(HISTORY_LINES)
        readline.set_completer(self.complete)
        readline.set_completer_delims(" \t\n")
        # libedit, as on macOS, has another language for its settings.
        libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
        with contextlib.suppress(OSError):
            readline.read_history_file(self.history)

    def complete(self, text: str, number: int) -> str | None:
        """The completion of a command with this number; readline asks until there is none."""
        if readline is None or not text.startswith("/") or readline.get_begidx() > 0:
            return None
        found = [one for one in self.completions if one.startswith(text.lower())]
        return f"{found[number]} " if number < len(found) else None

    def close(self) -> None:
        if readline is None or _file_size(self.forgotten) != self._forgotten_bytes:
            return
        with contextlib.suppress(OSError):
            os.close(os.open(self.history, os.O_WRONLY | os.O_CREAT, 0o600))
            readline.write_history_file(self.history)

    def read(self) -> str | None:
        """The next line, or None at the end of input. Ctrl-C raises KeyboardInterrupt."""
        with self._lock:
            for text in self._unshown:
                sys.stdout.write(f"{text}\n")
            self._unshown.clear()
            self._waits = True
        try:
            return input(self.text)
        except EOFError:
            return None
        finally:
            with self._lock:
                self._waits = False

    def show_above(self, text: str) -> None:
        """Show a text over the line that is being typed, from another thread; after the answer if one is under way."""
        with self._lock:
            if not self._waits:
                self._unshown.append(text)
                return
            typed = "" if readline is None else readline.get_line_buffer()
            sys.stdout.write(f"\r\x1b[K{text}\n{self.text}{typed}")
            sys.stdout.flush()


def read_answer(question: str) -> str | None:
    """Read an answer outside the chat history, dropping earlier input; None on Ctrl-C or Ctrl-D."""
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


def _file_size(path: Path | None) -> int:
    try:
        return 0 if path is None else path.stat().st_size
    except OSError:
        return 0


_USUAL = ("nano", "vi")


def edit_text(text: str, suffix: str = ".txt") -> str:
    """Let the person edit the text in a private temporary file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"annabelle{suffix}"
        file.write_text(text, encoding="utf-8")
        file.chmod(0o600)
        _edit(file)
        return file.read_text(encoding="utf-8", errors="replace")


def _edit(file: Path) -> None:
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    for command in [chosen] if chosen else _USUAL:
        with contextlib.suppress(FileNotFoundError):
            if _run_editor(command, file):
                return
            raise CallerMistake("The editor ended with an error. Nothing was changed.")
    raise CallerMistake("No editor was found.", hint="Name yours in EDITOR, as in: EDITOR=nano annabelle memory …")


def _run_editor(command: str, file: Path) -> bool:
    try:
        return subprocess.run([*shlex.split(command), str(file)], check=False).returncode == 0
    except (PermissionError, ValueError) as error:
        raise CallerMistake(f"{command!r} can not be run. Nothing was changed.", hint="Put EDITOR right.") from error


MAX_CHARS = 1000


def ask_line(what: str, option: str, *, secret: bool = False) -> str:
    """Ask for a line; `option` names the other way to give it."""
    line = _read_terminal(what, secret=secret) if sys.stdin.isatty() else sys.stdin.readline(MAX_CHARS + 2)
    answer = line.rstrip("\r\n") if secret else line.strip()  # spaces may be part of a password
    if not answer.strip():
        other = "Nothing was changed." if sys.stdin.isatty() else f"Give it with {option}, or run this in a terminal."
        raise CallerMistake(f"{what} is missing.", hint=other)
    return check_line(what, answer)


def check_line(what: str, answer: str) -> str:
    """Check that an answer has no control characters and is not too long."""
    if len(answer) > MAX_CHARS:
        raise CallerMistake(f"{what} is too long.")
    if any(ord(char) < 32 or ord(char) == 127 for char in answer):
        raise CallerMistake(f"{what} has a control character in it.")
    return answer


def _read_terminal(what: str, *, secret: bool) -> str:
    # Ask on stderr, so that stdout contains only the command's result.
    shown = f"{what}: "
    try:
        if secret:
            return getpass.getpass(shown, stream=sys.stderr)
        sys.stderr.write(shown)
        sys.stderr.flush()
        return input()
    except (EOFError, KeyboardInterrupt) as left:
        sys.stderr.write("\n")
        raise typer.Abort from left
