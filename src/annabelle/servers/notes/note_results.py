"""What the tools for notes give back."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from annabelle.servers.kit import Result


class NoteLine(BaseModel):
    """A note in a list."""

    model_config = ConfigDict(frozen=True)

    id: str
    title: str
    tags: list[str]
    path: str
    updated: datetime

    def line(self) -> str:
        tags = f" [{', '.join(self.tags)}]" if self.tags else ""
        return f"{self.id}: {self.title}{tags} ({self.updated:%Y-%m-%d})"


class NoteShown(Result):
    """A note with its text."""

    id: str
    title: str
    tags: list[str]
    path: str
    created: datetime | None = None
    updated: datetime
    content: str
    rest: str | None = Field(default=None, description="File with the whole text, when it is too long to show")

    def text(self) -> str:
        tags = f" [{', '.join(self.tags)}]" if self.tags else ""
        cut = f"\n[Cut; the whole text is in {self.rest}]" if self.rest else ""
        return f"{self.title}{tags} ({self.path})\n\n{self.content}{cut}"


class NoteKept(Result):
    """What became of a note."""

    id: str
    title: str
    path: str
    message: str
    backup: str | None = Field(default=None, description="Where the text before is kept for some days")

    def text(self) -> str:
        return self.message


class NoteList(Result):
    """Notes, the newest first."""

    notes: list[NoteLine]
    total: int
    next_page: str | None = None

    def text(self) -> str:
        lines = [note.line() for note in self.notes] or ["No notes."]
        return "\n".join([*lines, *([f"[more: page_token {self.next_page}]"] if self.next_page else [])])


class NoteHit(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: str
    title: str
    path: str
    lines: list[str] = Field(description="Where it stands, as number: text")


class NoteHits(Result):
    """Notes in which words were found."""

    hits: list[NoteHit]
    more: int = 0

    def text(self) -> str:
        found = [f"{hit.id}: {hit.title}\n" + "\n".join(f"  {line}" for line in hit.lines) for hit in self.hits]
        return "\n".join([*(found or ["Nothing was found."]), *([f"[{self.more} more notes]"] if self.more else [])])
