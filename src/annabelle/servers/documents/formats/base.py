"""The interface of document formats."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import BaseModel

Cell = str | int | float | bool | None
Row = list[Cell]

MAX_CELL_CHARS = 1000
_COUNTED_PARTS = 100
_ROWS_AS_TEXT = 20_000


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A page, a sheet, a slide, or the whole of a document that has none."""

    number: int
    label: str
    text: str


@dataclass(frozen=True, slots=True)
class DocumentTable:
    """Rows of cells, with a label that says where the table is."""

    label: str
    rows: Iterator[Row]


class DocumentFacts(BaseModel):
    """What is known about a document besides its text."""

    title: str | None = None
    author: str | None = None
    subject: str | None = None
    created: str | None = None
    modified: str | None = None
    parts: int | None = None
    sheets: list[str] = []
    words: int | None = None
    attachments: list[str] = []
    note: str | None = None


@dataclass(frozen=True, slots=True)
class WantedParts:
    """Which parts were asked for; empty means all."""

    numbers: tuple[int, ...] = field(default=())
    sheet: str | None = None

    def has(self, number: int, label: str = "") -> bool:
        if self.sheet is not None:
            return self.sheet.casefold() == label.casefold() or self.sheet == str(number)
        return not self.numbers or number in self.numbers


class DocumentFormat(ABC):
    """Base of the formats. `part` is what its parts are called; empty when it has only one."""

    part = ""

    @abstractmethod
    def parts(self, data: bytes, wanted: WantedParts) -> Iterator[DocumentPart]:
        """Yield the wanted parts; the others are not read."""

    def facts(self, data: bytes) -> DocumentFacts:
        """Metadata of the document, without the number of words."""
        return DocumentFacts()

    def tables(self, data: bytes) -> Iterator[DocumentTable]:
        yield from ()

    def count_words(self, data: bytes) -> int:
        """Count the words of the first hundred parts."""
        parts = itertools.islice(self.parts(data, WantedParts()), _COUNTED_PARTS)
        return sum(len(part.text.split()) for part in parts)


class SheetFormat(DocumentFormat):
    """A spreadsheet: each of its tables is a part."""

    part = "sheet"

    def parts(self, data: bytes, wanted: WantedParts) -> Iterator[DocumentPart]:
        for number, table in enumerate(self.tables(data), start=1):
            if wanted.has(number, table.label):
                yield DocumentPart(number, table.label, format_rows(table.rows))


def format_row(row: Row) -> str:
    """A row as a line; empty cells at its end are left out."""
    cells = ["" if cell is None else " ".join(str(cell).split()) for cell in row]
    while cells and not cells[-1]:
        cells.pop()
    return " | ".join(cells)


def format_rows(rows: Iterator[Row]) -> str:
    """A sheet as lines. One of very many rows is cut: read as text, it would only cost time."""
    lines = [line for row in itertools.islice(rows, _ROWS_AS_TEXT) if (line := format_row(row))]
    if next(rows, None) is not None:
        lines.append(f"[only the first {_ROWS_AS_TEXT} rows; read_spreadsheet reads the others]")
    return "\n".join(lines)


def cut_cell(value: str) -> str:
    return value if len(value) <= MAX_CELL_CHARS else f"{value[: MAX_CELL_CHARS - 1]}…"
