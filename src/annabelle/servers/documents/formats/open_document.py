"""OpenDocument texts, spreadsheets and slides."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from annabelle.core.errors import InvalidArguments
from annabelle.servers.documents.formats.base import Facts, Format, Part, Row, Table, Wanted, cut_cell, rows_text
from annabelle.servers.documents.formats.zipped import opened, xml_of

_O = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_T = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_META = "{urn:oasis:names:tc:opendocument:xmlns:meta:1.0}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_MAX_REPEAT = 1000
_MAX_ROWS = 100_000


class OpenText(Format):
    """A text, in the order it is written."""

    def parts(self, data: bytes, wanted: Wanted) -> Iterator[Part]:
        yield Part(1, "", "\n".join(_lines(_content(data))))

    def facts(self, data: bytes) -> Facts:
        return _facts(data)

    def tables(self, data: bytes) -> Iterator[Table]:
        for number, table in enumerate(_content(data).iter(f"{_TABLE}table"), start=1):
            yield Table(table.get(f"{_TABLE}name") or f"table {number}", _rows(table))


class OpenSheets(OpenText):
    """A spreadsheet; each of its tables is a sheet."""

    part = "sheet"

    def parts(self, data: bytes, wanted: Wanted) -> Iterator[Part]:
        for number, table in enumerate(self.tables(data), start=1):
            if wanted.has(number, table.label):
                yield Part(number, table.label, rows_text(table.rows))

    def facts(self, data: bytes) -> Facts:
        names = [table.label for table in self.tables(data)]
        return _facts(data).model_copy(update={"parts": len(names), "sheets": names[:200]})


class OpenSlides(OpenText):
    """A presentation."""

    part = "slide"

    def parts(self, data: bytes, wanted: Wanted) -> Iterator[Part]:
        for number, page in enumerate(_content(data).iter(f"{_DRAW}page"), start=1):
            if wanted.has(number):
                yield Part(number, f"slide {number}", "\n".join(_lines(page)))

    def facts(self, data: bytes) -> Facts:
        count = sum(1 for _ in _content(data).iter(f"{_DRAW}page"))
        return _facts(data).model_copy(update={"parts": count})


def _content(data: bytes) -> Element:
    with opened(data) as archive:
        root = xml_of(archive, "content.xml")
    if root is None:
        raise InvalidArguments("The file has no content in it.", field="path")
    return root


def _facts(data: bytes) -> Facts:
    with opened(data) as archive:
        root = xml_of(archive, "meta.xml")
    meta = None if root is None else root.find(f"{_O}meta")
    if meta is None:
        return Facts()

    def said(tag: str) -> str | None:
        return (meta.findtext(tag) or "").strip()[:300] or None

    return Facts(
        title=said(f"{_DC}title"),
        author=said(f"{_META}initial-creator") or said(f"{_DC}creator"),
        subject=said(f"{_DC}subject"),
        created=said(f"{_META}creation-date"),
        modified=said(f"{_DC}date"),
    )


def _lines(root: Element) -> Iterator[str]:
    for element in root.iter():
        if element.tag == f"{_T}h":
            level = element.get(f"{_T}outline-level") or "1"
            yield f"{'#' * (int(level) if level in '123456' else 6)} {_words(element)}"
        elif element.tag == f"{_T}p":
            yield _words(element)


def _words(element: Element) -> str:
    pieces: list[str] = [element.text or ""]
    for inner in element:
        if inner.tag == f"{_T}s":
            pieces.append(" " * _count(inner.get(f"{_T}c")))
        elif inner.tag in (f"{_T}tab", f"{_T}line-break"):
            pieces.append(" ")
        else:
            pieces.append(_words(inner))
        pieces.append(inner.tail or "")
    return "".join(pieces)


def _rows(table: Element) -> Iterator[Row]:
    """Repeated rows and cells are written once in the file; a million empty ones are left out."""
    given = 0
    for row in table.iter(f"{_TABLE}table-row"):
        cells: Row = []
        for cell in row:
            if cell.tag not in (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
                continue
            text = cut_cell("\n".join(_words(line) for line in cell.iter(f"{_T}p"))) or None
            repeat = _count(cell.get(f"{_TABLE}number-columns-repeated"))
            cells += [text] * (repeat if text is not None or repeat < 50 else 0)
        filled = any(cell is not None for cell in cells)
        for _ in range(_count(row.get(f"{_TABLE}number-rows-repeated")) if filled else 1):
            if given >= _MAX_ROWS:
                return
            given += 1
            yield list(cells)


def _count(text: str | None) -> int:
    return min(int(text), _MAX_REPEAT) if text and text.isascii() and text.isdecimal() and len(text) < 9 else 1


TEXT, SHEETS, SLIDES = OpenText(), OpenSheets(), OpenSlides()
