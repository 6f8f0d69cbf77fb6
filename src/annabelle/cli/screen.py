"""The chat on a terminal: streamed text that can be taken back, tool activity, notices.

Written with plain control sequences: the answer streams letter by letter into the normal scroll-back, and only the
text of the step that speaks now may be erased, when a newer attempt replaces it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TextIO

from rich.cells import cell_len

from annabelle.cli.turn_view import (
    Added,
    Asked,
    Change,
    Ended,
    Failed,
    Noticed,
    Replaced,
    Sent,
    Thinking,
    ToolFinished,
    ToolStarted,
)

_DIM, _BOLD, _RED, _GREEN, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[0m"
_ARGUMENTS_WIDTH = 100
_WAITING = "…"


@dataclass(slots=True)
class Screen:
    """Paints the changes of a turn. `_open` is the text of the current step, still erasable."""

    out: TextIO
    colour: bool = True
    _open: str = ""
    _said: str = ""
    _waiting: bool = False

    def waiting(self) -> None:
        """A sign of life until the first word comes."""
        self._write(self._style(_DIM, _WAITING))
        self._waiting = True

    def show(self, change: Change) -> None:
        if isinstance(change, Thinking | Asked):
            return
        self._clear_waiting()
        match change:
            case Added(text):
                self._add(text)
            case Replaced(text):
                self._erase()
                self._add(text)
            case ToolStarted(name=name, arguments=arguments):
                self._close()
                self._line(self._style(_DIM, f"⚙ {name} {_short(arguments)}".rstrip()))
            case ToolFinished(name=name, worked=worked, summary=summary, duration_ms=duration):
                mark = self._style(_GREEN, "✓") if worked else self._style(_RED, "✗")
                tail = f": {_one_line(summary)}" if summary and not worked else ""
                self._line(f"{mark} {self._style(_DIM, f'{name} {duration:.0f} ms{tail}')}")
            case Noticed(text):
                self._close()
                self._line(self._style(_DIM, f"· {clean(text)}"))
            case Sent(text):
                self._deliver(text)
            case Failed(error):
                self._close()
                self._line(self._style(_RED, clean(error.message)))
                if error.hint:
                    self._line(self._style(_DIM, clean(error.hint)))
            case Ended():
                self._close()

    def _deliver(self, text: str) -> None:
        """The delivered message, unless these very words were streamed already."""
        shown = (self._said + self._open).strip()
        self._close()
        if text.strip() and not shown.endswith(clean(text).strip()):
            self._line(clean(text))
        self._said = ""

    def _add(self, text: str) -> None:
        self._open += clean(text)
        self._write(clean(text))

    def _erase(self) -> None:
        """Take back what was streamed of this step; what has scrolled off the window is crossed by a note instead."""
        size = os.get_terminal_size(self.out.fileno()) if self.out.isatty() else os.terminal_size((80, 24))
        rows = sum(max(1, -(-cell_len(line) // size.columns)) for line in self._open.split("\n")) if self._open else 1
        if rows < size.lines and self.out.isatty():
            self._write(("\r" + f"\x1b[{rows - 1}A" if rows > 1 else "\r") + "\x1b[J")
        elif self._open:
            self._write("\n" + self._style(_DIM, "(once more)") + "\n")
        self._open = ""

    def _close(self) -> None:
        """The step is over: its text stays."""
        if self._open and not self._open.endswith("\n"):
            self._write("\n")
        self._said, self._open = self._said + self._open, ""

    def _clear_waiting(self) -> None:
        if self._waiting:
            self._write("\r\x1b[K" if self.out.isatty() else "\n")
            self._waiting = False

    def _line(self, text: str) -> None:
        self._write(f"{text}\n")

    def _style(self, code: str, text: str) -> str:
        return f"{code}{text}{_PLAIN}" if self.colour else text

    def _write(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()


def clean(text: str) -> str:
    """Text from a model or a tool without control characters: it must not steer the terminal."""
    return "".join(char for char in text if char in "\n\t" or (char >= " " and not "\x7f" <= char <= "\x9f"))


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())[:200]


def _short(arguments: dict[str, object]) -> str:
    text = " ".join(f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in arguments.items())
    flat = _one_line(text)
    return flat if len(flat) <= _ARGUMENTS_WIDTH else flat[: _ARGUMENTS_WIDTH - 1] + "…"
