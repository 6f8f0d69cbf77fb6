"""Tools for notes."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from annabelle.core.errors import Conflict, InvalidArguments, NotFound
from annabelle.core.messages import now
from annabelle.servers.kit import tool
from annabelle.servers.kit.overflow import Overflow
from annabelle.servers.kit.paging import page_of
from annabelle.servers.notes.note_file import Note, clean_tag, read_note
from annabelle.servers.notes.note_results import NoteHit, NoteHits, NoteKept, NoteLine, NoteList, NoteShown
from annabelle.servers.notes.shelf import NOTES, Hand, Paper, Shelf

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
class Found:
    """A note and the file it is in."""

    note: Note
    paper: Paper

    def line(self) -> NoteLine:
        return NoteLine(
            id=self.note.id,
            title=self.note.title,
            tags=list(self.note.tags),
            path=self.paper.path,
            updated=self.paper.modified,
        )


class Notes:
    """create_note, get_note, update_note, delete_note, list_notes and search_notes."""

    def __init__(self, shelf: Shelf, overflow: Overflow) -> None:
        self._shelf, self._overflow = shelf, overflow

    @tool(read_only=False, destructive=False, idempotent=False, open_world=False)
    async def create_note(
        self,
        title: Title,
        content: Content = "",
        tags: Annotated[Tags | None, Field(description="Words to find it by")] = None,
    ) -> NoteKept:
        """Write a new note. It becomes a Markdown file in Notes/ of the workspace."""
        called = _title(title)
        note = Note(f"n-{secrets.token_hex(5)}", called, content, _tags(tags), now())
        path = await self._shelf.perform(called, lambda hand: hand.add(NOTES, called, note.write()))
        return NoteKept(id=note.id, title=called, path=path, message=f"The note {note.id} is in {path}.")

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def get_note(self, note: Which) -> NoteShown:
        """Read a note."""
        found = await self._shelf.perform(note, lambda hand: find(hand, note))
        shown = await self._overflow.show(found.note.body, _SHOWN_CHARS, "note.md")
        return NoteShown(**found.line().model_dump(), created=found.note.created, content=shown.text, rest=shown.rest)

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
    ) -> NoteKept:
        """Add to a note, or replace its text, title or tags. The text before is kept in temp/backups for some days."""
        if content is None and title is None and tags is None:
            raise InvalidArguments("Nothing is to be changed.", hint="Give content, title or tags.", field="content")

        def work(hand: Hand) -> NoteKept:
            found = find(hand, note)
            old = found.note
            body = old.body if content is None else content if mode == "replace" else _joined(old.body, content)
            new = old.changed(
                body=body,
                title=old.title if title is None else _title(title),
                tags=old.tags if tags is None else _tags(tags),
            )
            if new == old:
                message = f"The note {old.id} already says so."
                return NoteKept(id=old.id, title=old.title, path=found.paper.path, message=message)
            backup = hand.replace(found.paper, new.write())
            message = f"The note {new.id} is changed. The text before is kept as {backup}."
            return NoteKept(id=new.id, title=new.title, path=found.paper.path, message=message, backup=backup)

        return await self._shelf.perform(note, work)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=False)
    async def delete_note(self, note: Which) -> NoteKept:
        """Delete a note. Its file is kept in temp/trash for some days; moving it back undoes this."""

        def work(hand: Hand) -> NoteKept:
            found = find(hand, note)
            trash = hand.discard(found.paper)
            message = f"The note {found.note.title!r} is deleted. To undo, move {trash} back to {found.paper.path}."
            return NoteKept(
                id=found.note.id, title=found.note.title, path=found.paper.path, message=message, backup=trash
            )

        return await self._shelf.perform(note, work)

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
        found = await self._shelf.perform("Notes", everything)
        fitting = [
            one for one in found if (not wanted or wanted in one.note.tags) and words in one.note.title.casefold()
        ]
        page = page_of(fitting, page_token, limit)
        return NoteList(notes=[one.line() for one in page.items], total=len(fitting), next_page=page.next_page)

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
        found = await self._shelf.perform("Notes", everything)
        hits = [hit for one in found if (hit := _hit(one, words)) is not None]
        return NoteHits(hits=hits[:limit], more=max(0, len(hits) - limit))


def everything(hand: Hand) -> list[Found]:
    """Every note there is, the newest first."""
    return [Found(read_note(paper), paper) for paper in hand.papers(NOTES)]


def find(hand: Hand, which: str) -> Found:
    """The note somebody means; several of one title are named, not guessed at."""
    notes = everything(hand)
    wanted = which.strip()
    by_id = [one for one in notes if one.note.id == wanted]
    by_path = [one for one in notes if wanted in (one.paper.path, one.paper.name)]
    by_title = [one for one in notes if one.note.title.casefold() == wanted.casefold()]
    for found in (by_id, by_path, by_title):
        if len(found) == 1:
            return found[0]
        if found:
            names = "; ".join(f"{one.paper.path} ({one.note.id})" for one in found[:5])
            raise Conflict(
                f"Several notes are called {wanted[:80]!r}.", hint=f"Name one by path: {names}.", field="note"
            )
    raise NotFound(
        f"There is no note {wanted[:80]!r}.", hint="list_notes and search_notes show what there is.", field="note"
    )


def _hit(one: Found, words: list[str]) -> NoteHit | None:
    lines = one.note.body.split("\n")
    whole = f"{one.note.title}\n{' '.join(one.note.tags)}\n{one.note.body}".casefold()
    if not all(word in whole for word in words):
        return None
    places = [
        f"{number}: {line.strip()[:_EXCERPT]}"
        for number, line in enumerate(lines, start=1)
        if any(word in line.casefold() for word in words)
    ]
    return NoteHit(id=one.note.id, title=one.note.title, path=one.paper.path, lines=places[:_HITS_PER_NOTE])


def _joined(body: str, more: str) -> str:
    return f"{body.rstrip()}\n\n{more}" if body.strip() else more


def _tags(words: list[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag for word in words or () if (tag := clean_tag(word))))


def _title(text: str) -> str:
    title = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if not title:
        raise InvalidArguments("The title is empty.", field="title")
    return title
