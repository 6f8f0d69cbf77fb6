"""The questions and answers exchanged with the worker process, and page and cell ranges."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import ErrorBody, InvalidArguments
from annabelle.servers.documents.formats.base import DocumentFacts, Row


class _DocumentQuestion(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str = ""
    """The file's name, put in when it is read; its ending tells kinds of text apart."""


class ReadText(_DocumentQuestion):
    ask: Literal["text"] = "text"
    pages: str | None = None
    sheet: str | None = None
    offset: int = 0
    max_chars: int = 20_000


class FindText(_DocumentQuestion):
    ask: Literal["find"] = "find"
    query: str
    limit: int = 20


class TellFacts(_DocumentQuestion):
    ask: Literal["facts"] = "facts"
    words: bool = True
    """Whether they are to be counted, which takes reading it all."""


class ReadRows(_DocumentQuestion):
    ask: Literal["rows"] = "rows"
    sheet: str | None = None
    range: str | None = None
    max_rows: int = 100


class ReadTables(_DocumentQuestion):
    ask: Literal["tables"] = "tables"
    limit: int = 10
    max_rows: int = 50


class TellPicture(_DocumentQuestion):
    ask: Literal["picture"] = "picture"


class ListMembers(_DocumentQuestion):
    ask: Literal["members"] = "members"


AnyDocumentQuestion = Annotated[
    ReadText | FindText | TellFacts | ReadRows | ReadTables | TellPicture | ListMembers, Field(discriminator="ask")
]


class TextAnswer(BaseModel):
    ask: Literal["text"] = "text"
    kind: str
    part: str
    content: str
    next_offset: int | None = None
    covered: list[int] = []


class DocumentHit(BaseModel):
    where: str
    line: int
    text: str


class FindAnswer(BaseModel):
    ask: Literal["find"] = "find"
    kind: str
    hits: list[DocumentHit]
    more: bool = False


class FactsAnswer(BaseModel):
    ask: Literal["facts"] = "facts"
    kind: str
    part: str
    facts: DocumentFacts


class RowsAnswer(BaseModel):
    ask: Literal["rows"] = "rows"
    kind: str
    sheet: str
    sheets: list[str]
    first_row: int
    first_column: int
    rows: list[Row]
    more: bool = False


class TableRows(BaseModel):
    label: str
    rows: list[Row]
    more: bool = False


class TablesAnswer(BaseModel):
    ask: Literal["tables"] = "tables"
    kind: str
    tables: list[TableRows]
    more: bool = False


class PictureAnswer(BaseModel):
    ask: Literal["picture"] = "picture"
    format: str
    width: int
    height: int
    mode: str
    frames: int = 1
    taken: str | None = None
    camera: str | None = None
    lens: str | None = None
    orientation: int | None = None
    latitude: float | None = None
    longitude: float | None = None
    altitude: float | None = None
    other: dict[str, str] = {}


class ArchiveMember(BaseModel):
    name: str
    size: int
    kind: str
    modified: str | None = None
    warning: str | None = Field(default=None, description="Why to be careful with it")


class MembersAnswer(BaseModel):
    """What an archive says it has in it."""

    ask: Literal["members"] = "members"
    kind: str
    members: list[ArchiveMember]
    count: int
    size: int
    complete: bool = True


DocumentAnswer = Annotated[
    TextAnswer | FindAnswer | FactsAnswer | RowsAnswer | TablesAnswer | PictureAnswer | MembersAnswer,
    Field(discriminator="ask"),
]


class WorkerRefusal(BaseModel):
    """A sentence instead of an answer."""

    ask: Literal["refused"] = "refused"
    error: ErrorBody


_PAGES = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")
_CELLS = re.compile(r"([A-Z]{1,3})?([0-9]{1,7})?(?::([A-Z]{1,3})?([0-9]{1,7})?)?", re.IGNORECASE)
_MAX_PAGES = 2000


@dataclass(frozen=True, slots=True)
class CellRange:
    """A block of cells, counted from one; None where it is open."""

    first_row: int = 1
    last_row: int | None = None
    first_column: int = 1
    last_column: int | None = None


def parse_page_numbers(text: str | None) -> tuple[int, ...]:
    """Page numbers in the order they are asked for; none means all."""
    if text is None or not text.strip():
        return ()
    found: dict[int, None] = {}
    for word in text.replace(" ", "").split(","):
        match = _PAGES.fullmatch(word)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last or last - first > _MAX_PAGES:
            raise InvalidArguments(f"{text[:80]!r} names no pages.", hint="Write them like 1-3,7.", field="pages")
        found |= dict.fromkeys(range(first, last + 1))
    if len(found) > _MAX_PAGES:
        raise InvalidArguments(f"At most {_MAX_PAGES} pages are read at once.", field="pages")
    return tuple(found)


def parse_cell_range(text: str | None) -> CellRange:
    """The block a range names: `B2:D10`, `A:C` (whole columns), `5:9` (whole rows) or one cell."""
    if text is None or not text.strip():
        return CellRange()
    match = _CELLS.fullmatch(text.strip().replace("$", ""))
    if match is None or not any(match.groups()):
        raise InvalidArguments(f"{text[:80]!r} names no cells.", hint="Write them like A1:D20.", field="range")
    column, row, last_column, last_row = match.groups()
    single = ":" not in text
    block = CellRange(
        first_row=int(row or 1),
        last_row=int(row) if single and row else int(last_row) if last_row else None,
        first_column=column_number(column) if column else 1,
        last_column=column_number(column) if single and column else column_number(last_column) if last_column else None,
    )
    upside_down = block.last_row is not None and block.last_row < block.first_row
    if block.first_row < 1 or upside_down or (block.last_column or block.first_column) < block.first_column:
        raise InvalidArguments(f"{text[:80]!r} ends before it begins.", field="range")
    return block


def column_number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


def column_letters(number: int) -> str:
    letters = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
