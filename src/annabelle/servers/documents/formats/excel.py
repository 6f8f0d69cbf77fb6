"""Excel files, sheet by sheet, row by row; formulas show the value they had when the file was saved."""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import Protocol, cast

import openpyxl

from annabelle.servers.documents.formats.base import (
    Cell,
    DocumentFacts,
    DocumentTable,
    Row,
    SheetFormat,
    cut_cell,
)
from annabelle.servers.documents.formats.zip_formats import open_checked_zip, read_core_facts

_MAX_ROWS = 200_000
_MAX_COLUMNS = 500


class _ExcelSheet(Protocol):
    """What is used of the library's sheets."""

    title: str
    max_row: int | None
    max_column: int | None

    def reset_dimensions(self) -> None: ...
    def iter_rows(self, *, values_only: bool) -> Iterator[tuple[object, ...]]: ...


class _ExcelBook(Protocol):
    sheetnames: list[str]
    worksheets: list[_ExcelSheet]

    def close(self) -> None: ...


class ExcelFormat(SheetFormat):
    def facts(self, data: bytes) -> DocumentFacts:
        with open_checked_zip(data) as archive:
            known = read_core_facts(archive)
        with _open(data) as workbook:
            names = workbook.sheetnames
        return known.model_copy(update={"parts": len(names), "sheets": names[:200]})

    def tables(self, data: bytes) -> Iterator[DocumentTable]:
        with _open(data) as workbook:
            for sheet in workbook.worksheets:
                yield DocumentTable(sheet.title, _rows(sheet))


@contextmanager
def _open(data: bytes) -> Generator[_ExcelBook]:
    with open_checked_zip(data):
        workbook = cast("_ExcelBook", openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True))
    try:
        yield workbook
    finally:
        workbook.close()


def _rows(sheet: _ExcelSheet) -> Iterator[Row]:
    # Rows are filled up to the size a sheet claims; one that claims a million columns has them as long as they are.
    if (sheet.max_column or 0) > _MAX_COLUMNS or (sheet.max_row or 0) > _MAX_ROWS:
        sheet.reset_dimensions()
    for number, row in enumerate(sheet.iter_rows(values_only=True)):
        if number >= _MAX_ROWS:
            return
        yield [_cell(value) for value in row]


def _cell(value: object) -> Cell:
    if value is None or isinstance(value, bool | int | float):
        return value if not isinstance(value, float) or abs(value) < 1e300 else str(value)
    if isinstance(value, datetime) and value.time() == time(0):
        return value.date().isoformat()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return cut_cell(str(value)) if not isinstance(value, timedelta) else str(value)


FORMAT = ExcelFormat()
