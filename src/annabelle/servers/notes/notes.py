"""Tools for notes."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from annabelle.core.errors import Conflict, InvalidArguments, NotFound
from annabelle.core.messages import now
from annabelle.core.result_text import for_model, read_on
from annabelle.servers.kit import Result, tool
from annabelle.servers.kit.overflow import Overflow
from annabelle.servers.kit.pagination import get_page
from annabelle.servers.notes.markdown import Note, clean_tag, parse_note
from annabelle.servers.notes.notes_folder import NOTES, LockedNotes, MarkdownFile, NotesFolder


class NoteLine(Result):
    """A note in a list."""

    id: str
    title: str
    tags: list[str]
    path: str
    updated: datetime

    def to_text(self) -> str:
        tags = f" [{', '.join(self.tags)}]" if self.tags else ""
        return f"{for_model(f'{self.id}: ')}{self.title}{tags} ({self.updated:%Y-%m-%d})"


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

    def to_text(self) -> str:
        tags = f" [{', '.join(self.tags)}]" if self.tags else ""
        cut = f"\n[Cut; the whole text is in {self.rest}]" if self.rest else ""
        return f"{self.title}{tags} ({self.path})\n\n{self.content}{cut}"


class NoteSaved(Result):
    """What became of a note."""

    id: str
    title: str
    path: str
    message: str
    backup: str | None = Field(default=None, description="Where the text before is kept for some days")

    def to_text(self) -> str:
        return f"{self.message}{for_model(f' Its id is {self.id}.')}"


class NoteList(Result):
    """Notes, the newest first."""

    notes: list[NoteLine]
    total: int
    next_page: str | None = None

    def to_text(self) -> str:
        lines = [note.to_text() for note in self.notes] or ["No notes."]
        return "\n".join([*lines, *([read_on(f"[more: page_token {self.next_page}]")] if self.next_page else [])])


class NoteHit(Result):
    id: str
    title: str
    path: str
    lines: list[str] = Field(description="Where it stands, as number: text")


class NoteHits(Result):
    """Notes in which words were found."""

    hits: list[NoteHit]
    more: int = 0

    def to_text(self) -> str:
        found = [
            f"{for_model(f'{hit.id}: ')}{hit.title}\n" + "\n".join(f"  {line}" for line in hit.lines)
            for hit in self.hits
        ]
        return "\n".join([*(found or ["Nothing was found."]), *([f"[{self.more} more notes]"] if self.more else [])])


_SHOWN_CHARS = 20_000
_EXCERPT = 160
_HITS_PER_NOTE = 3

Which = Annotated[str, Field(min_length=1, max_length=300, description="The note: its id, its title or its path")]
Title = Annotated[str, Field(min_length=1, max_length=200, description="What it is called")]
Content = Annotated[str, Field(max_length=200_000, description="Text in Markdown")]
Tags = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=40)]], Field(max_length=20, description="Words to find it by")
]
PageToken = Annotated[str | None, Field(max_length=40, description="From the page before")]


@dataclass(frozen=True, slots=True)
class FoundNote:
    note: Note
    file: MarkdownFile

    def to_line(self) -> NoteLine:
        return NoteLine(
            id=self.note.id,
            title=self.note.title,
            tags=list(self.note.tags),
            path=self.file.path,
            updated=self.file.modified,
        )


class NoteTools:
    def __init__(self, folder: NotesFolder, overflow: Overflow) -> None:
        self._folder, self._overflow = folder, overflow

    @tool(read_only=False, destructive=False, idempotent=False, open_world=False)
    async def create_note(
        self,
        title: Title,
        content: Content = "",
        tags: Annotated[Tags | None, Field(description="Words to find it by")] = None,
    ) -> NoteSaved:
        """Write a new note. It becomes a Markdown file in Notes/ of the workspace."""
        called = _clean_title(title)
        note = Note(f"n-{secrets.token_hex(5)}", called, content, _clean_tags(tags), now())
        path = await self._folder.run_locked(called, lambda hand: hand.add(NOTES, called, note.to_markdown()))
        return NoteSaved(id=note.id, title=called, path=path, message=f"The note is in {path}.")

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def get_note(self, note: Which) -> NoteShown:
        """Read a note."""
        found = await self._folder.run_locked(note, lambda hand: find_note(hand, note))
        shown = await self._overflow.show_text(found.note.body, _SHOWN_CHARS, "note.md")
        return NoteShown(
            **found.to_line().model_dump(), created=found.note.created, content=shown.text, rest=shown.rest
        )

    @tool(read_only=False, destructive=True, idempotent=False, open_world=False)
    async def update_note(
        self,
        note: Which,
        content: Annotated[Content | None, Field(description="Text in Markdown; left out, the text stays")] = None,
        mode: Annotated[
            Literal["append", "replace"], Field(description="Add to the text, or put it in its place")
        ] = "append",
        title: Annotated[Title | None, Field(description="New title; the file keeps its name")] = None,
        tags: Annotated[Tags | None, Field(description="New tags, in place of the old ones")] = None,
    ) -> NoteSaved:
        """Add to a note, or replace its text, title or tags. The text before is kept in temp/backups for some days."""
        if content is None and title is None and tags is None:
            raise InvalidArguments("Nothing is to be changed.", hint="Give content, title or tags.", field="content")

        def update(hand: LockedNotes) -> NoteSaved:
            found = find_note(hand, note)
            old = found.note
            body = old.body if content is None else content if mode == "replace" else _append_text(old.body, content)
            new = old.with_changes(
                body=body,
                title=old.title if title is None else _clean_title(title),
                tags=old.tags if tags is None else _clean_tags(tags),
            )
            if new == old:
                message = "The note already says so."
                return NoteSaved(id=old.id, title=old.title, path=found.file.path, message=message)
            backup = hand.replace(found.file, new.to_markdown())
            message = f"The note is changed. The text before is kept as {backup}."
            return NoteSaved(id=new.id, title=new.title, path=found.file.path, message=message, backup=backup)

        return await self._folder.run_locked(note, update)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=False)
    async def delete_note(self, note: Which) -> NoteSaved:
        """Delete a note. Its file is kept in temp/trash for some days; moving it back undoes this."""

        def delete(hand: LockedNotes) -> NoteSaved:
            found = find_note(hand, note)
            trash = hand.discard(found.file)
            message = f"The note {found.note.title!r} is deleted. To undo, move {trash} back to {found.file.path}."
            return NoteSaved(
                id=found.note.id, title=found.note.title, path=found.file.path, message=message, backup=trash
            )

        return await self._folder.run_locked(note, delete)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_notes(
        self,
        tag: Annotated[str, Field(max_length=40, description="Only notes with this tag")] = "",
        query: Annotated[str, Field(max_length=200, description="Only notes with this in their title")] = "",
        limit: Annotated[int, Field(ge=1, le=100, description="How many per page")] = 50,
        page_token: PageToken = None,
    ) -> NoteList:
        """List notes, the newest first."""
        wanted, words = clean_tag(tag), query.strip().casefold()
        found = await self._folder.run_locked("Notes", read_all_notes)
        fitting = [
            one for one in found if (not wanted or wanted in one.note.tags) and words in one.note.title.casefold()
        ]
        page = get_page(fitting, page_token, limit)
        return NoteList(notes=[one.to_line() for one in page.items], total=len(fitting), next_page=page.next_page)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def search_notes(
        self,
        query: Annotated[str, Field(min_length=1, max_length=200, description="Words; a note must have all of them")],
        limit: Annotated[int, Field(ge=1, le=50, description="How many notes at most")] = 20,
    ) -> NoteHits:
        """Find notes by words in their title, tags or text, with the lines they stand in."""
        words = query.casefold().split()
        if not words:
            raise InvalidArguments("There is nothing to search for.", field="query")
        found = await self._folder.run_locked("Notes", read_all_notes)
        hits = [hit for one in found if (hit := _match_note(one, words)) is not None]
        return NoteHits(hits=hits[:limit], more=max(0, len(hits) - limit))


def read_all_notes(hand: LockedNotes) -> list[FoundNote]:
    """All notes, newest first."""
    return [FoundNote(parse_note(paper), paper) for paper in hand.read_files(NOTES)]


def find_note(hand: LockedNotes, which: str) -> FoundNote:
    """Find a note by id, path or title; raises Conflict if several match."""
    notes = read_all_notes(hand)
    wanted = which.strip()
    by_id = [one for one in notes if one.note.id == wanted]
    by_path = [one for one in notes if wanted in (one.file.path, one.file.name)]
    by_title = [one for one in notes if one.note.title.casefold() == wanted.casefold()]
    for found in (by_id, by_path, by_title):
        if len(found) == 1:
            return found[0]
        if found:
            names = "; ".join(f"{one.file.path} ({one.note.id})" for one in found[:5])
            raise Conflict(
                f"Several notes are called {wanted[:80]!r}.", hint=f"Name one by path: {names}.", field="note"
            )
    raise NotFound(
        f"There is no note {wanted[:80]!r}.", hint="list_notes and search_notes show what there is.", field="note"
    )


def _match_note(one: FoundNote, words: list[str]) -> NoteHit | None:
    lines = one.note.body.split("\n")
    whole = f"{one.note.title}\n{' '.join(one.note.tags)}\n{one.note.body}".casefold()
    if not all(word in whole for word in words):
        return None
    places = [
        f"{number}: {line.strip()[:_EXCERPT]}"
        for number, line in enumerate(lines, start=1)
        if any(word in line.casefold() for word in words)
    ]
    return NoteHit(id=one.note.id, title=one.note.title, path=one.file.path, lines=places[:_HITS_PER_NOTE])


def _append_text(body: str, more: str) -> str:
    return f"{body.rstrip()}\n\n{more}" if body.strip() else more


def _clean_tags(words: list[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag for word in words or () if (tag := clean_tag(word))))


def _clean_title(text: str) -> str:
    title = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if not title:
        raise InvalidArguments("The title is empty.", field="title")
    return title
