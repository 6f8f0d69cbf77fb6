"""Whether a file holds a text at all: in what can be read from it, or in what was deleted and not overwritten."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from annabelle.core.needle import Needle
from annabelle.store.driver import driver

_CHUNK = 8_000_000
_OVERLAP = 100_000
_SQLITE = b"SQLite format 3\x00"


def bytes_hold(path: Path, needle: Needle) -> bool:
    """Whether the text stands in the bytes of a file; a row that is long may be split over pages and not be seen."""
    with path.open("rb") as file:
        tail = b""
        while chunk := file.read(_CHUNK):
            if needle.within_bytes(tail + chunk):
                return True
            tail = chunk[-_OVERLAP:]
    return False


def file_holds(path: Path, needle: Needle) -> bool:
    """The same for a file nobody writes; of a database also the rows are read."""
    return bytes_hold(path, needle) or (_is_database(path) and _rows_hold(path, needle))


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _rows_hold(path: Path, needle: Needle) -> bool:
    with contextlib.closing(driver.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as reading:
        try:
            return any(needle.within(cell) for cell in _texts(reading))
        except driver.Error:
            return False  # a damaged copy: its bytes were searched


def _texts(reading: driver.Connection) -> Iterator[str]:
    listing = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    names: Sequence[tuple[str]] = reading.execute(listing).fetchall()
    for (name,) in names:
        quoted = name.replace('"', '""')
        for row in reading.execute(f'SELECT * FROM "{quoted}"'):  # noqa: S608  a name the file itself told
            yield from (cell for cell in row if isinstance(cell, str))
