"""Writes to stdout: lines, tables and JSON for commands, and the streamed chat."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from pydantic import BaseModel
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from annabelle.core.tools import name_in_words
from annabelle.core.turn_view import (
    ApprovalAsked,
    NoticeAdded,
    ReasoningAdded,
    ReplySent,
    TextAdded,
    TextReplaced,
    ToolFinished,
    ToolStarted,
    TurnChange,
    TurnViewEnded,
    TurnViewFailed,
)


def print_json(value: object) -> None:
    """Print one JSON document; pydantic models become plain data."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=_to_plain) + "\n")
    sys.stdout.flush()


def _to_plain(value: object) -> object:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else str(value)


def print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def print_paragraph(text: str) -> None:
    """Print text, wrapped between words on a terminal."""
    if sys.stdout.isatty():
        text = textwrap.fill(text, shutil.get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)
    print_line(text)


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a plain table; the last column gets the remaining width."""
    console = Console(highlight=False)
    if not console.is_terminal:
        # A pipe has no width, so nothing may be cut.
        console.width = 10_000
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for position, title in enumerate(titles):
        table.add_column(title, no_wrap=position < len(titles) - 1, overflow="fold")
    for row in rows:
        table.add_row(*(_escape_markup(cell) for cell in row))
    with console.capture() as drawn:
        console.print(table)
    # Strip padding of the last column, which is in the way when copying or grepping.
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in drawn.get().splitlines()))
    sys.stdout.flush()


def print_rows(data: object, titles: Sequence[str], rows: Sequence[Sequence[str]], empty: str, *, json: bool) -> None:
    """Print the data as JSON, or its rows as a table; without rows, the sentence `empty`."""
    if json:
        print_json(data)
    elif rows:
        print_table(titles, rows)
    else:
        print_paragraph(empty)


def print_outcome(data: object, sentence: str, *, json: bool) -> None:
    """Print what a command did, as JSON or as a sentence."""
    if json:
        print_json(data)
    else:
        print_paragraph(sentence)


def print_secret(data: object, secret: str, sentence: str, *, json: bool) -> None:
    """Print a secret that is shown once, alone on stdout so that it can be piped, and what it is on stderr."""
    if json:
        print_json(data)
        return
    print_line(secret)
    sys.stderr.write(f"{sentence}\n")


def _escape_markup(text: str) -> str:
    # Rich treats square brackets as markup.
    return text.replace("[", "\\[")


_DIM, _BOLD, _RED, _GREEN, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[0m"
_ARGUMENTS_WIDTH = 100
_WAITING = "…"


@dataclass(slots=True)
class ChatScreen:
    """Renders the changes of a turn. `_open` is the text of the current step, which can still be erased."""

    out: TextIO
    colour: bool = True
    _open: str = ""
    _said: str = ""
    _waiting: bool = False

    def show_waiting(self) -> None:
        self._write(self._style(_DIM, _WAITING))
        self._waiting = True

    def show(self, change: TurnChange) -> None:
        if isinstance(change, ReasoningAdded | ApprovalAsked):
            return
        self._clear_waiting()
        match change:
            case TextAdded(text):
                self._add(text)
            case TextReplaced(text):
                self._erase()
                self._add(text)
            case ToolStarted(name=name, arguments=arguments):
                self._close()
                self._line(self._style(_DIM, f"⚙ {_in_words(name)} {_format_arguments(arguments)}".rstrip()))
            case ToolFinished(name=name, worked=worked, summary=summary, duration_ms=duration):
                mark = self._style(_GREEN, "✓") if worked else self._style(_RED, "✗")
                tail = f": {_one_line(summary)}" if summary and not worked else ""
                self._line(f"{mark} {self._style(_DIM, f'{_in_words(name)} {duration:.0f} ms{tail}')}")
            case NoticeAdded(text):
                self._close()
                self._line(self._style(_DIM, f"· {clean(text)}"))
            case ReplySent(text):
                self._deliver(text)
            case TurnViewFailed(error):
                self._close()
                self._line(self._style(_RED, clean(error.message)))
                if error.hint:
                    self._line(self._style(_DIM, clean(error.hint)))
            case TurnViewEnded():
                self._close()

    def _deliver(self, text: str) -> None:
        """Show the delivered message unless the same text was streamed."""
        shown = (self._said + self._open).strip()
        self._close()
        if text.strip() and not shown.endswith(clean(text).strip()):
            self._line(clean(text))
        self._said = ""

    def _add(self, text: str) -> None:
        self._open += clean(text)
        self._write(clean(text))

    def _erase(self) -> None:
        """Erase what was streamed of this step, or add a note if it has scrolled off the window."""
        size = os.get_terminal_size(self.out.fileno()) if self.out.isatty() else os.terminal_size((80, 24))
        rows = sum(max(1, -(-cell_len(line) // size.columns)) for line in self._open.split("\n")) if self._open else 1
        if rows < size.lines and self.out.isatty():
            self._write(("\r" + f"\x1b[{rows - 1}A" if rows > 1 else "\r") + "\x1b[J")
        elif self._open:
            self._write("\n" + self._style(_DIM, "(once more)") + "\n")
        self._open = ""

    def _close(self) -> None:
        """End the step; its text stays."""
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
    """Remove control characters, so that text from a model or tool cannot control the terminal."""
    return "".join(char for char in text if char in "\n\t" or (char >= " " and not "\x7f" <= char <= "\x9f"))


def _in_words(tool: str) -> str:
    return name_in_words(clean(tool))


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())[:200]


def _format_arguments(arguments: dict[str, object]) -> str:
    text = " ".join(f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in arguments.items())
    flat = _one_line(text)
    return flat if len(flat) <= _ARGUMENTS_WIDTH else flat[: _ARGUMENTS_WIDTH - 1] + "…"
