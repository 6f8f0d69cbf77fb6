"""Answers questions about the cells of a file."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from annabelle.core.errors import InvalidArguments, NotFound
from annabelle.servers.documents.formats.base import Format, Row, Table, Wanted
from annabelle.servers.documents.kinds import Kind
from annabelle.servers.documents.questions import ReadRows, ReadTables, RowsAnswer, TableRows, TablesAnswer
from annabelle.servers.documents.ranges import cells

_MAX_COLUMNS = 100
_MAX_CHARS = 300_000
"""Of all cells of one answer together."""


def answer_rows(question: ReadRows, reader: Format, data: bytes, kind: Kind) -> RowsAnswer:
    """Cells of one sheet."""
    if kind not in ("xlsx", "ods", "csv"):
        raise InvalidArguments(
            f"The file is no spreadsheet but {kind}.", hint="read_document or extract_tables read it.", field="path"
        )
    block = cells(question.range)
    wanted = Wanted(sheet=question.sheet) if question.sheet else Wanted((1,))
    found: RowsAnswer | None = None
    names: list[str] = []
    for number, table in enumerate(reader.tables(data), start=1):
        names.append(table.label)
        if found is None and (kind == "csv" or wanted.has(number, table.label)):
            most = question.max_rows if block.last_row is None else block.last_row - block.first_row + 1
            rows, more = _taken(
                itertools.islice(table.rows, block.first_row - 1, None),
                min(most, question.max_rows),
                lambda row: row[block.first_column - 1 : block.last_column],
            )
            cut = more and (block.last_row is None or len(rows) < most)
            found = RowsAnswer(
                kind=kind, sheet=table.label, sheets=[], first_row=block.first_row, first_column=block.first_column,
                rows=rows, more=cut,
            )  # fmt: skip
    if found is None:
        known = ", ".join(names[:20])
        raise NotFound(f"There is no sheet {question.sheet!r}.", hint=f"There are {known}.", field="sheet")
    return found.model_copy(update={"sheets": names[:200]})


def answer_tables(question: ReadTables, reader: Format, data: bytes, kind: Kind) -> TablesAnswer:
    """Every table of a document."""
    found: list[TableRows] = []
    for table in reader.tables(data):
        if len(found) == question.limit:
            return TablesAnswer(kind=kind, tables=found, more=True)
        found.append(_table(table, question.max_rows))
    return TablesAnswer(kind=kind, tables=found)


def _table(table: Table, most: int) -> TableRows:
    rows, more = _taken(table.rows, most, lambda row: row)
    return TableRows(label=table.label, rows=rows, more=more)


def _taken(rows: Iterable[Row], most: int, choose: Callable[[Row], Row]) -> tuple[list[Row], bool]:
    """The first rows that fit into an answer, and whether there are more. Empty rows at the end do not count."""
    taken: list[Row] = []
    chars = 0
    for row in rows:
        chosen = choose(row)[:_MAX_COLUMNS]
        chars += sum(len(cell) if isinstance(cell, str) else 8 for cell in chosen)
        if len(taken) == most or chars > _MAX_CHARS:
            return taken, True
        taken.append(chosen)
    while taken and all(cell is None for cell in taken[-1]):
        taken.pop()
    return taken, False
