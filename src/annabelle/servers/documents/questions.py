"""What is asked of a file, and what comes back: the words between the server and the process that reads."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import ErrorBody
from annabelle.servers.documents.formats.base import Facts, Row


class _Asked(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    """The file's name; its ending tells kinds of text apart."""


class ReadText(_Asked):
    ask: Literal["text"] = "text"
    pages: str | None = None
    sheet: str | None = None
    offset: int = 0
    max_chars: int = 20_000


class FindText(_Asked):
    ask: Literal["find"] = "find"
    query: str
    limit: int = 20


class TellFacts(_Asked):
    ask: Literal["facts"] = "facts"
    words: bool = True
    """Whether they are to be counted, which takes reading it all."""


class ReadRows(_Asked):
    ask: Literal["rows"] = "rows"
    sheet: str | None = None
    range: str | None = None
    max_rows: int = 100


class ReadTables(_Asked):
    ask: Literal["tables"] = "tables"
    limit: int = 10
    max_rows: int = 50


class TellPicture(_Asked):
    ask: Literal["picture"] = "picture"


class ListMembers(_Asked):
    ask: Literal["members"] = "members"


Question = Annotated[
    ReadText | FindText | TellFacts | ReadRows | ReadTables | TellPicture | ListMembers, Field(discriminator="ask")
]


class TextAnswer(BaseModel):
    ask: Literal["text"] = "text"
    kind: str
    part: str
    parts: int | None = None
    content: str
    next_offset: int | None = None
    covered: list[int] = []


class Hit(BaseModel):
    where: str
    line: int
    text: str


class FoundAnswer(BaseModel):
    ask: Literal["find"] = "find"
    kind: str
    hits: list[Hit]
    more: bool = False


class FactsAnswer(BaseModel):
    ask: Literal["facts"] = "facts"
    kind: str
    part: str
    facts: Facts


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
    facts: dict[str, object]


class MembersAnswer(BaseModel):
    ask: Literal["members"] = "members"
    kind: str
    contents: dict[str, object]


Answer = Annotated[
    TextAnswer | FoundAnswer | FactsAnswer | RowsAnswer | TablesAnswer | PictureAnswer | MembersAnswer,
    Field(discriminator="ask"),
]


class Refusal(BaseModel):
    """A sentence instead of an answer."""

    ask: Literal["refused"] = "refused"
    error: ErrorBody
