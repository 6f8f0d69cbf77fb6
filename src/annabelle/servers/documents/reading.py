"""Tools that read documents and search in them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.documents.desk import Desk, Path, name_of
from annabelle.servers.documents.questions import (
    FactsAnswer,
    FindText,
    FoundAnswer,
    Hit,
    ReadText,
    TellFacts,
    TextAnswer,
)
from annabelle.servers.kit import Result, tool


class DocumentText(Result):
    """The text of a document, or a part of it."""

    path: str
    kind: str
    content: str
    parts: list[int] = Field(default_factory=list, description="Pages, sheets or slides that are in the content")
    next_offset: int | None = Field(default=None, description="Where to read on; absent at the end")
    notice: str | None = None

    def text(self) -> str:
        more = [f"[There is more: offset {self.next_offset}]"] if self.next_offset is not None else []
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
    hits: list[Hit]
    more: bool = False

    def text(self) -> str:
        lines = [f"{', '.join(filter(None, (hit.where, f'line {hit.line}')))}: {hit.text}" for hit in self.hits]
        return "\n".join([*(lines or ["Nothing was found."]), *(["[there are more]"] if self.more else [])])


class Reading:
    """read_document, get_document_info and search_document."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def read_document(
        self,
        path: Path,
        pages: Annotated[
            str | None, Field(max_length=200, description="Pages or slides, as in 1-3,7; all if left out")
        ] = None,
        sheet: Annotated[str | None, Field(max_length=200, description="One sheet of a spreadsheet, by name")] = None,
        offset: Annotated[int, Field(ge=0, le=100_000_000, description="Characters to leave out at the start")] = 0,
        max_chars: Annotated[int, Field(ge=100, le=100_000, description="How much text at most")] = 20_000,
    ) -> DocumentText:
        """Read the text of a document: PDF, Word, Excel, PowerPoint, OpenDocument, RTF, HTML, mail (EML), CSV, Markdown
        or plain text. A long one is read piece by piece with offset."""
        question = ReadText(name=name_of(path), pages=pages, sheet=sheet, offset=offset, max_chars=max_chars)
        shown, _, found = await self._desk.ask(path, question, TextAnswer)
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
    async def get_document_info(self, path: Path) -> DocumentInfo:
        """Tell what a document is: its kind, title, author, times, pages, sheets and number of words."""
        shown, size, found = await self._desk.ask(path, TellFacts(name=name_of(path)), FactsAnswer)
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
        path: Path,
        query: Annotated[str, Field(min_length=1, max_length=300, description="Words as they stand in the text")],
        limit: Annotated[int, Field(ge=1, le=100, description="How many places at most")] = 20,
    ) -> DocumentHits:
        """Find words in a document, with the page, sheet or slide and the line they stand in. Case does not count."""
        if not query.strip():
            raise InvalidArguments("There is nothing to search for.", field="query")
        question = FindText(name=name_of(path), query=query, limit=limit)
        shown, _, found = await self._desk.ask(path, question, FoundAnswer)
        return DocumentHits(path=shown, kind=found.kind, hits=found.hits, more=found.more)


def _only_labels(content: str) -> bool:
    return all(not line.strip() or (line.startswith("[page ") and line.endswith("]")) for line in content.split("\n"))
