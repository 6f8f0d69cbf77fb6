"""Spreadsheets and tables, as rows of cells."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from annabelle.core.errors import InvalidArguments, NotFound
from annabelle.servers.documents.formats import base
from annabelle.servers.documents.questions import column_letters, column_number, parse_cell_range
from servers.documents import papers
from servers.documents.conftest import Put
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-ALL")

ODS = (
    '<office:spreadsheet><table:table table:name="First"><table:table-row><table:table-cell><text:p>a</text:p>'
    '</table:table-cell><table:table-cell table:number-columns-repeated="2"><text:p>b</text:p></table:table-cell>'
    '<table:table-cell table:number-columns-repeated="16384"/></table:table-row>'
    '<table:table-row table:number-rows-repeated="1048576"><table:table-cell/></table:table-row></table:table>'
    '<table:table table:name="Second"/></office:spreadsheet>'
)
PAGE = (
    b"<table><tr><th>Name<th>Age<tr><td>Ann<td>30 <table><tr><td>inner</table></table>"
    b"<table><tr><td>x</td></tr></table>"
)


async def test_cells_are_read_as_what_they_are(ask: CallTool, put: Put) -> None:
    result = await ask("read_spreadsheet", path=put("a.xlsx", papers.excel()))
    assert result.rows == [
        ["Item", "Price", "When"],
        ["Tea", 2.5, "2026-03-01"],
        ["Cake", 4, None],
        ["Sum", None, None],
    ]
    assert (result.sheet, result.sheets, result.range) == ("Costs", ["Costs", "Numbers"], "A1:C4")


async def test_a_range_and_a_sheet_narrow_what_is_read(ask: CallTool, put: Put) -> None:
    path = put("a.xlsx", papers.excel())
    block = await ask("read_spreadsheet", path=path, range="b2:C3")
    assert (block.rows, block.range) == ([[2.5, "2026-03-01"], [4, None]], "B2:C3")
    assert (await ask("read_spreadsheet", path=path, range="A:A")).rows[0] == ["Item"]
    assert (await ask("read_spreadsheet", path=path, range="B3")).rows == [[4]]
    assert (await ask("read_spreadsheet", path=path, sheet="2", range="300:310")).rows == [[300, 90_000]]
    with pytest.raises(NotFound, match="no sheet 'Third'") as caught:
        await ask("read_spreadsheet", path=path, sheet="Third")
    assert "Costs, Numbers" in str(caught.value.hint)


async def test_many_rows_come_in_pieces(ask: CallTool, put: Put) -> None:
    path = put("a.xlsx", papers.excel())
    first = await ask("read_spreadsheet", path=path, sheet="Numbers")
    assert (len(first.rows), first.more_from_row) == (100, 101)
    rest = await ask("read_spreadsheet", path=path, sheet="Numbers", range="101:300", max_rows=1000)
    assert (rest.rows[0], rest.rows[-1], rest.more_from_row) == ([101, 10_201], [300, 90_000], None)


async def test_an_open_spreadsheet_does_not_swell_by_repetition(ask: CallTool, put: Put) -> None:
    path = put("a.ods", papers.open_document("spreadsheet", ODS))
    result = await ask("read_spreadsheet", path=path)
    assert result.rows == [["a", "b", "b"]]
    assert (await ask("list_sheets", path=path)).sheets == ["First", "Second"]


async def test_a_sheet_of_very_many_rows_is_cut_as_text(
    ask: CallTool, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "_ROWS_AS_TEXT", 50)
    text = (await ask("read_document", path=put("a.xlsx", papers.excel()), sheet="Numbers")).content
    assert "50 | 2500" in text
    assert "51 | 2601" not in text
    assert "only the first 50 rows" in text


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
async def test_what_separates_cells_is_found(ask: CallTool, put: Put, sign: str) -> None:
    text = f'name{sign}note{sign}age\nAnn{sign}"a{sign}b\nc"{sign}3\n'
    result = await ask("read_spreadsheet", path=put("a.csv", text.encode()))
    assert result.rows == [["name", "note", "age"], ["Ann", f"a{sign}b\nc", "3"]]


async def test_sheets_are_listed(ask: CallTool, put: Put) -> None:
    assert (await ask("list_sheets", path=put("a.xlsx", papers.excel()))).sheets == ["Costs", "Numbers"]
    with pytest.raises(InvalidArguments, match="has no sheets"):
        await ask("list_sheets", path=put("a.docx", papers.word()))
    with pytest.raises(InvalidArguments, match="no spreadsheet"):
        await ask("read_spreadsheet", path="a.docx")


async def test_tables_are_taken_out_of_documents(ask: CallTool, put: Put) -> None:
    word = await ask("extract_tables", path=put("a.docx", papers.word()))
    assert [table.rows for table in word.tables] == [[["Name", "Age"], ["Ann", "30"]]]
    page = await ask("extract_tables", path=put("a.html", PAGE))
    assert [table.rows for table in page.tables] == [[["Name", "Age"], ["Ann", "30"]], [["inner"]], [["x"]]]
    book = await ask("extract_tables", path=put("a.xlsx", papers.excel()), max_rows=2)
    assert [(table.label, len(table.rows), table.more) for table in book.tables] == [
        ("Costs", 2, True),
        ("Numbers", 2, True),
    ]
    assert (await ask("extract_tables", path=put("a.xlsx", papers.excel()), limit=1)).more
    assert (await ask("extract_tables", path=put("a.pdf", papers.pdf("x")))).to_text() == "There are no tables."


async def test_wide_and_long_cells_are_bounded(ask: CallTool, put: Put) -> None:
    wide = ",".join(["x" * 5000] * 500) + "\n"
    result = await ask("read_spreadsheet", path=put("a.csv", (wide * 5).encode()))
    assert len(result.rows[0]) == 100
    assert len(result.rows[0][0]) == 1000
    assert result.more_from_row == 4


@pytest.mark.parametrize("text", ["", " ", "A1:", "A1:B2", "$A$1:$B$2", "A:C", "3:5", "ZZZ9999999"])
def test_ranges_that_people_write_are_read(text: str) -> None:
    assert parse_cell_range(text).first_row >= 1


@pytest.mark.parametrize("text", ["B2:A1", "A5:A2", "A0", "1A", "A1:B2:C3", "A1,B2", "ABCD1", ":", "٣:٤"])
def test_ranges_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidArguments):
        parse_cell_range(text)


@given(st.integers(1, 18_000))
def test_a_column_is_its_letters(number: int) -> None:
    assert column_number(column_letters(number)) == number
