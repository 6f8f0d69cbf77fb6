"""Where results go: stdout, as text for people or JSON for machines."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Sequence

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table


def print_json(value: object) -> None:
    """One JSON document on stdout; pydantic models become plain data."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=_plain) + "\n")
    sys.stdout.flush()


def _plain(value: object) -> object:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else str(value)


def print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def print_paragraph(text: str) -> None:
    """A sentence or more, broken between words where a terminal is too narrow for it."""
    if sys.stdout.isatty():
        text = textwrap.fill(text, shutil.get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)
    print_line(text)


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A plain table; the last column gets the room that is left."""
    console = Console(highlight=False)
    if not console.is_terminal:
        # A pipe has no width to fit into: nothing may be cut.
        console.width = 10_000
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for position, title in enumerate(titles):
        table.add_column(title, no_wrap=position < len(titles) - 1, overflow="fold")
    for row in rows:
        table.add_row(*(_literal(cell) for cell in row))
    with console.capture() as drawn:
        console.print(table)
    # The last column is filled up with blanks, which only get in the way of whoever copies or greps.
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in drawn.get().splitlines()))
    sys.stdout.flush()


def _literal(text: str) -> str:
    # Square brackets are markup to Rich.
    return text.replace("[", "\\[")
