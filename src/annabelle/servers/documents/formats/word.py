"""Word files: paragraphs and tables in their order."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

import docx
from docx.table import Table as WordTable
from docx.text.paragraph import Paragraph

from annabelle.servers.documents.formats.base import (
    DocumentFacts,
    DocumentFormat,
    DocumentPart,
    DocumentTable,
    Row,
    WantedParts,
    cut_cell,
    format_row,
)
from annabelle.servers.documents.formats.zip_formats import open_checked_zip, read_core_facts

if TYPE_CHECKING:
    from docx.document import Document


class WordFormat(DocumentFormat):
    def parts(self, data: bytes, wanted: WantedParts) -> Iterator[DocumentPart]:
        lines: list[str] = []
        for block in _open(data).iter_inner_content():
            if isinstance(block, Paragraph):
                lines.append(_paragraph(block))
            else:
                lines += [format_row(row) for row in _rows(block)]
        yield DocumentPart(1, "", "\n".join(lines))

    def facts(self, data: bytes) -> DocumentFacts:
        with open_checked_zip(data) as archive:
            return read_core_facts(archive)

    def tables(self, data: bytes) -> Iterator[DocumentTable]:
        for number, table in enumerate(_open(data).tables, start=1):
            yield DocumentTable(f"table {number}", _rows(table))


def _open(data: bytes) -> Document:
    with open_checked_zip(data):
        return docx.Document(io.BytesIO(data))


def _paragraph(paragraph: Paragraph) -> str:
    style = (paragraph.style.name if paragraph.style is not None else None) or ""
    if style.startswith("Heading ") and style[8:].isdecimal():
        return f"{'#' * min(6, int(style[8:]))} {paragraph.text}"
    if style == "Title":
        return f"# {paragraph.text}"
    return f"- {paragraph.text}" if style.startswith("List ") and paragraph.text else paragraph.text


def _rows(table: WordTable) -> Iterator[Row]:
    for row in table.rows:
        yield [cut_cell(cell.text.strip()) for cell in row.cells]


FORMAT = WordFormat()
