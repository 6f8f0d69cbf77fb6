"""Tools that read documents, tables, pictures and archives."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.core.result_text import read_on
from annabelle.servers.documents import questions
from annabelle.servers.documents.document_access import DocumentPath, DocumentQueries
from annabelle.servers.documents.formats.base import Row, format_row
from annabelle.servers.kit import Result, tool


class DocumentText(Result):
    """The text of a document, or a part of it."""

    path: str
    kind: str
    content: str
    parts: list[int] = Field(default_factory=list, description="Pages, sheets or slides that are in the content")
    next_offset: int | None = Field(default=None, description="Where to read on; absent at the end")
    notice: str | None = None

    def to_text(self) -> str:
        more = [read_on(f"[There is more: offset {self.next_offset}]")] if self.next_offset is not None else []
        return "\n".join([self.content, *([f"[{self.notice}]"] if self.notice else []), *more])


class DocumentInfo(Result):
    """What is known of a document."""

    path: str
    kind: str
    size: int
    title: str | None = None
    author: str | None = None
    subject: str | None = None
    created: str | None = None
    modified: str | None = None
    pages: int | None = None
    sheets: list[str] = Field(default_factory=list)
    slides: int | None = None
    words: int | None = Field(default=None, description="Of the first hundred pages at most")
    attachments: list[str] = Field(default_factory=list)
    note: str | None = None


class DocumentHits(Result):
    """Where words stand in a document."""

    path: str
    kind: str
    hits: list[questions.DocumentHit]
    more: bool = False

    def to_text(self) -> str:
        lines = [f"{', '.join(filter(None, (hit.where, f'line {hit.line}')))}: {hit.text}" for hit in self.hits]
        return "\n".join([*(lines or ["Nothing was found."]), *(["[there are more]"] if self.more else [])])


class DocumentReadTools:
    """read_document, get_document_info and search_document."""

    def __init__(self, documents: DocumentQueries) -> None:
        self._documents = documents

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def read_document(
        self,
        path: DocumentPath,
        pages: Annotated[
            str | None, Field(max_length=200, description="Pages or slides, as in 1-3,7; all if left out")
        ] = None,
        sheet: Annotated[str | None, Field(max_length=200, description="One sheet of a spreadsheet, by name")] = None,
        offset: Annotated[int, Field(ge=0, le=100_000_000, description="Characters to leave out at the start")] = 0,
        max_chars: Annotated[int, Field(ge=100, le=100_000, description="How much text at most")] = 20_000,
    ) -> DocumentText:
        """Read the text of a document: PDF, Word, Excel, PowerPoint, OpenDocument, RTF, HTML, mail (EML), CSV, Markdown
        or plain text. A long one is read piece by piece with offset."""
        question = questions.ReadText(pages=pages, sheet=sheet, offset=offset, max_chars=max_chars)
        shown, _, found = await self._documents.ask(path, question, questions.TextAnswer)
        empty = not found.content.strip() or (found.part == "page" and _only_labels(found.content))
        notice = "No text was found; the pages may be pictures (a scan)." if found.kind == "pdf" else "It is empty."
        return DocumentText(
            path=shown,
            kind=found.kind,
            content=found.content,
            parts=found.covered if found.part else [],
            next_offset=found.next_offset,
            notice=None if not empty else notice if offset == 0 else "There is nothing after this offset.",
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def get_document_info(self, path: DocumentPath) -> DocumentInfo:
        """Tell what a document is: its kind, title, author, times, pages, sheets and number of words."""
        shown, size, found = await self._documents.ask(path, questions.TellFacts(), questions.FactsAnswer)
        facts = found.facts
        return DocumentInfo(
            path=shown,
            size=size,
            kind=found.kind,
            pages=facts.parts if found.part == "page" else None,
            slides=facts.parts if found.part == "slide" else None,
            **facts.model_dump(exclude={"parts"}),
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def search_document(
        self,
        path: DocumentPath,
        query: Annotated[str, Field(min_length=1, max_length=300, description="Words as they stand in the text")],
        limit: Annotated[int, Field(ge=1, le=100, description="How many places at most")] = 20,
    ) -> DocumentHits:
        """Find words in a document, with the page, sheet or slide and the line they stand in. Case does not count."""
        if not query.strip():
            raise InvalidArguments("There is nothing to search for.", field="query")
        question = questions.FindText(query=query, limit=limit)
        shown, _, found = await self._documents.ask(path, question, questions.FindAnswer)
        return DocumentHits(path=shown, kind=found.kind, hits=found.hits, more=found.more)


def _only_labels(content: str) -> bool:
    return all(not line.strip() or (line.startswith("[page ") and line.endswith("]")) for line in content.split("\n"))


class SheetList(Result):
    """The sheets of a spreadsheet."""

    path: str
    sheets: list[str]

    def to_text(self) -> str:
        return "\n".join(self.sheets)


class SheetRows(Result):
    """Rows of a sheet."""

    path: str
    sheet: str
    sheets: list[str] = Field(description="All sheets of the file")
    range: str = Field(description="Where the rows stand")
    rows: list[Row]
    more_from_row: int | None = Field(default=None, description="The next row, when there are more")

    def to_text(self) -> str:
        more = [read_on(f"[There is more from row {self.more_from_row}]")] if self.more_from_row else []
        return "\n".join([f"{self.sheet} {self.range}", *(format_row(row) for row in self.rows), *more])


class ExtractedTables(Result):
    """Tables found in a document."""

    path: str
    kind: str
    tables: list[questions.TableRows]
    more: bool = Field(default=False, description="Whether there are more tables")

    def to_text(self) -> str:
        blocks = [
            "\n".join([table.label, *(format_row(row) for row in table.rows), *(["[more rows]"] if table.more else [])])
            for table in self.tables
        ]
        return "\n\n".join([*(blocks or ["There are no tables."]), *(["[more tables]"] if self.more else [])])


class TableTools:
    """list_sheets, read_spreadsheet and extract_tables."""

    def __init__(self, documents: DocumentQueries) -> None:
        self._documents = documents

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_sheets(self, path: DocumentPath) -> SheetList:
        """List the sheets of a spreadsheet (Excel or OpenDocument)."""
        shown, _, found = await self._documents.ask(path, questions.TellFacts(words=False), questions.FactsAnswer)
        if found.part != "sheet":
            raise InvalidArguments(f"A {found.kind} file has no sheets.", hint="read_document reads it.", field="path")
        return SheetList(path=shown, sheets=found.facts.sheets)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def read_spreadsheet(
        self,
        path: DocumentPath,
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
        question = questions.ReadRows(sheet=sheet, range=range, max_rows=max_rows)
        shown, _, found = await self._documents.ask(path, question, questions.RowsAnswer)
        width = max((len(row) for row in found.rows), default=1)
        last = found.first_row + max(1, len(found.rows)) - 1
        columns = (found.first_column, found.first_column + max(1, width) - 1)
        start, end = map(questions.column_letters, columns)
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
        path: DocumentPath,
        limit: Annotated[int, Field(ge=1, le=50, description="How many tables at most")] = 10,
        max_rows: Annotated[int, Field(ge=1, le=500, description="How many rows of each at most")] = 50,
    ) -> ExtractedTables:
        """Take the tables out of a document: Word, Excel, OpenDocument, HTML or CSV. PDF files have no tables that
        could be told from text."""
        question = questions.ReadTables(limit=limit, max_rows=max_rows)
        shown, _, found = await self._documents.ask(path, question, questions.TablesAnswer)
        return ExtractedTables(path=shown, kind=found.kind, tables=found.tables, more=found.more)


_SHOWN = 300


class ImageInfo(Result):
    """What is known of a picture."""

    path: str
    size: int = Field(description="Bytes")
    format: str
    width: int
    height: int
    mode: str
    frames: int
    taken: str | None = Field(default=None, description="When, by the camera's clock")
    camera: str | None = None
    lens: str | None = None
    orientation: int | None = None
    latitude: float | None = Field(default=None, description="Where it was taken, in degrees north")
    longitude: float | None = Field(default=None, description="In degrees east")
    altitude: float | None = Field(default=None, description="In meters")
    other: dict[str, str] = Field(default_factory=dict)


class ArchiveList(Result):
    """What is in an archive."""

    path: str
    kind: str
    members: list[questions.ArchiveMember]
    count: int = Field(description="How many there are in all")
    size: int = Field(description="Bytes they unpack to, as the archive says")
    complete: bool = Field(default=True, description="Whether the archive was read to its end")

    def to_text(self) -> str:
        lines = [
            f"{member.name} ({member.size} bytes){f' [{member.warning}]' if member.warning else ''}"
            for member in self.members[:_SHOWN]
        ]
        rest = self.count - len(lines)
        more = [f"[{rest} more]"] if rest > 0 else []
        return "\n".join([f"{self.path}: {self.count} entries, {self.size} bytes unpacked", *lines, *more])


class ImageArchiveTools:
    """get_image_info and list_archive."""

    def __init__(self, documents: DocumentQueries) -> None:
        self._documents = documents

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def get_image_info(self, path: DocumentPath) -> ImageInfo:
        """Tell the facts of a picture: size, format, when and with what it was taken, and where, if the camera wrote
        that down."""
        shown, size, found = await self._documents.ask(path, questions.TellPicture(), questions.PictureAnswer)
        return ImageInfo(path=shown, size=size, **found.model_dump(exclude={"ask"}))

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_archive(self, path: DocumentPath) -> ArchiveList:
        """List what is in a zip or tar archive, without unpacking anything. Names that would lead outside are
        marked."""
        shown, _, found = await self._documents.ask(path, questions.ListMembers(), questions.MembersAnswer)
        return ArchiveList(path=shown, **found.model_dump(exclude={"ask"}))
