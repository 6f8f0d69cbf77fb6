"""Tools that read tables."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.documents.desk import Desk, Path, name_of
from annabelle.servers.documents.formats.base import Row, row_text
from annabelle.servers.documents.questions import (
    FactsAnswer,
    ReadRows,
    ReadTables,
    RowsAnswer,
    TableRows,
    TablesAnswer,
    TellFacts,
)
from annabelle.servers.documents.ranges import column_letters
from annabelle.servers.kit import Result, tool


class Sheets(Result):
    """The sheets of a spreadsheet."""

    path: str
    sheets: list[str]

    def text(self) -> str:
        return "\n".join(self.sheets)


class SheetRows(Result):
    """Rows of a sheet."""

    path: str
    sheet: str
    sheets: list[str] = Field(description="All sheets of the file")
    range: str = Field(description="Where the rows stand")
    rows: list[Row]
    more_from_row: int | None = Field(default=None, description="The next row, when there are more")

    def text(self) -> str:
        more = [f"[There is more from row {self.more_from_row}]"] if self.more_from_row else []
        return "\n".join([f"{self.sheet} {self.range}", *(row_text(row) for row in self.rows), *more])


class Tables(Result):
    """Tables found in a document."""

    path: str
    kind: str
    tables: list[TableRows]
    more: bool = Field(default=False, description="Whether there are more tables")

    def text(self) -> str:
        blocks = [
            "\n".join([table.label, *(row_text(row) for row in table.rows), *(["[more rows]"] if table.more else [])])
            for table in self.tables
        ]
        return "\n\n".join([*(blocks or ["There are no tables."]), *(["[more tables]"] if self.more else [])])


class Tabular:
    """list_sheets, read_spreadsheet and extract_tables."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_sheets(self, path: Path) -> Sheets:
        """List the sheets of a spreadsheet (Excel or OpenDocument)."""
        shown, _, found = await self._desk.ask(path, TellFacts(name=name_of(path), words=False), FactsAnswer)
        if found.part != "sheet":
            raise InvalidArguments(f"A {found.kind} file has no sheets.", hint="read_document reads it.", field="path")
        return Sheets(path=shown, sheets=found.facts.sheets)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def read_spreadsheet(
        self,
        path: Path,
        sheet: Annotated[
            str | None, Field(max_length=200, description="Its name or number; the first if left out")
        ] = None,
        range: Annotated[
            str | None, Field(max_length=40, description="Cells, as in A1:D20, A:C or 5:90; all if left out")
        ] = None,
        max_rows: Annotated[int, Field(ge=1, le=1000, description="How many rows at most")] = 100,
    ) -> SheetRows:
        """Read cells of a spreadsheet (Excel, OpenDocument or CSV) as rows. Formulas give the value they had when the
        file was saved."""
        question = ReadRows(name=name_of(path), sheet=sheet, range=range, max_rows=max_rows)
        shown, _, found = await self._desk.ask(path, question, RowsAnswer)
        width = max((len(row) for row in found.rows), default=1)
        last = found.first_row + max(1, len(found.rows)) - 1
        start, end = column_letters(found.first_column), column_letters(found.first_column + max(1, width) - 1)
        return SheetRows(
            path=shown,
            sheet=found.sheet,
            sheets=found.sheets,
            range=f"{start}{found.first_row}:{end}{last}",
            rows=found.rows,
            more_from_row=last + 1 if found.more else None,
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def extract_tables(
        self,
        path: Path,
        limit: Annotated[int, Field(ge=1, le=50, description="How many tables at most")] = 10,
        max_rows: Annotated[int, Field(ge=1, le=500, description="How many rows of each at most")] = 50,
    ) -> Tables:
        """Take the tables out of a document: Word, Excel, OpenDocument, HTML or CSV. PDF files have no tables that
        could be told from text."""
        question = ReadTables(name=name_of(path), limit=limit, max_rows=max_rows)
        shown, _, found = await self._desk.ask(path, question, TablesAnswer)
        return Tables(path=shown, kind=found.kind, tables=found.tables, more=found.more)
