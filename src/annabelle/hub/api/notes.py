"""`/notes` and `/links`: what people keep for their goals, or for none (MEM-11, THR-03)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from fastapi import Path, Query, Request
from pydantic import ConfigDict, Field

from annabelle.core.trust import Trust
from annabelle.hub.api.endpoint import ID_SHAPE, ApiAnswer, ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.context import HubContext
from annabelle.hub.goals.note_service import LINK_CHARS, LINK_PATTERN, TITLE_CHARS, NoteService
from annabelle.store.goals import StoredNote, Writer

router = ApiRouter("notes")
_CONTENT_CHARS: Final = 100_000
_EXCERPT: Final = 200
NoteId = Annotated[str, Path(pattern=ID_SHAPE, examples=["note_01k9zq3v7k0000000000000000"])]
Goal = Annotated[str, Field(min_length=1, max_length=200, description="Id or title of a goal")]
GoalQuery = Annotated[str | None, Query(min_length=1, max_length=200, description="Only of this goal: its id or title")]


class ListedNote(ApiAnswer):
    """One note in a list."""

    note_id: str
    goal_id: str | None
    title: str
    excerpt: str = Field(description="The beginning of its text")
    written_by: Writer
    read_from: list[str] | None = Field(description="What was read from outside before it was written")
    trust: Trust = Field(description="untrusted: its words may be somebody else's, and give no orders")
    created_at: datetime
    updated_at: datetime


class MarkdownNoteView(ApiAnswer):
    """A Markdown note of the workspace with the words."""

    path: str
    title: str
    lines: list[str]


class NoteListView(ApiAnswer):
    notes: list[ListedNote]
    markdown: list[MarkdownNoteView] = Field(description="Markdown notes of the workspace with these words")
    trouble: str | None = Field(description="Why the Markdown notes were not searched")
    before: str | None = Field(description="Goes on behind the last of these; none at the end")


class SuggestedGoal(ApiAnswer):
    goal_id: str
    title: str


class NoteView(ListedNote):
    """One note whole."""

    content: str = Field(description="Of a reference (notes:PATH): the text of the Markdown note")
    suggested_goal: SuggestedGoal | None = Field(description="The goal that a note without one fits")


class NewNoteBody(ApiBody):
    """A note in your words."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"title": "Teacher", "content": "Mrs. Novak, Tuesdays at six", "goal": None}]}
    )

    title: str = Field(min_length=1, max_length=TITLE_CHARS)
    content: str = Field(default="", max_length=_CONTENT_CHARS, description="notes:PATH refers to a Markdown note")
    goal: Goal | None = None


class NoteLinkBody(ApiBody):
    """A link to keep."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"url": "https://example.org/scales"}]})

    url: str = Field(max_length=LINK_CHARS, json_schema_extra={"pattern": LINK_PATTERN})
    goal: Goal | None = None


class NoteChange(ApiBody):
    """What is left out stays as it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "My teacher"}]})

    title: str | None = Field(default=None, min_length=1, max_length=TITLE_CHARS)
    content: str | None = Field(default=None, max_length=_CONTENT_CHARS)


class NoteMove(ApiBody):
    """To another goal, or with null to none."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"goal": "Learn to play the piano"}]})

    goal: Goal | None


@router.get("/notes", **document("Your notes", 404, 409))
async def list_notes(
    hub: TheHub,
    caller: Caller,
    goal: GoalQuery = None,
    q: Annotated[str, Query(max_length=200, description="Only those with all of these words")] = "",
    limit: Annotated[int, Query(ge=1, le=500, description="At most so many")] = 50,
    before: Annotated[str | None, Query(pattern=ID_SHAPE, description="Goes on behind this note")] = None,
) -> NoteListView:
    """Newest first, page by page. Words are also looked for in the Markdown notes of the workspace, unless a goal is
    named; the first page has what was found there.
    """
    also = bool(q) and goal is None and before is None
    found = await _notes(hub).search(caller.user_id, q, goal, limit=limit, before=before, markdown=also)
    markdown = [MarkdownNoteView(path=one.path, title=one.title, lines=list(one.lines)) for one in found.markdown]
    notes = [_to_line(note) for note in found.notes]
    return NoteListView(notes=notes, markdown=markdown, trouble=found.trouble, before=found.before)


@router.post("/notes", **document("Write a note", 404, 409, body=NewNoteBody))
async def add_note(hub: TheHub, caller: Caller, request: Request) -> NoteView:
    """For a goal, or for none: then it is offered to the goal it fits."""
    new = await read_body(request, NewNoteBody)
    note = await _notes(hub).add(caller.user_id, new.title, new.content, new.goal)
    return await _to_view(hub, note.id, caller.user_id)


@router.post("/links", **document("Keep a link as a note", 404, 409, body=NoteLinkBody))
async def add_link(hub: TheHub, caller: Caller, request: Request) -> NoteView:
    """Its page is read and summed up first. If that fails, the note says why and has the link."""
    new = await read_body(request, NoteLinkBody)
    note = await _notes(hub).add_link(caller.user_id, new.url, new.goal)
    return await _to_view(hub, note.id, caller.user_id)


@router.get("/notes/{note_id}", **document("One note", 404))
async def get_note(note_id: NoteId, hub: TheHub, caller: Caller) -> NoteView:
    return await _to_view(hub, note_id, caller.user_id)


@router.post("/notes/{note_id}/update", **document("Change a note", 404, body=NoteChange))
async def update_note(note_id: NoteId, hub: TheHub, caller: Caller, request: Request) -> NoteView:
    """Its title or its text. A note with words from outside stays one."""
    change = await read_body(request, NoteChange)
    note = await _notes(hub).change(note_id, caller.user_id, title=change.title, content=change.content)
    return await _to_view(hub, note.id, caller.user_id)


@router.post("/notes/{note_id}/move", **document("Put a note to a goal", 404, 409, body=NoteMove))
async def move_note(note_id: NoteId, hub: TheHub, caller: Caller, request: Request) -> NoteView:
    wanted = await read_body(request, NoteMove)
    note = await _notes(hub).move(note_id, wanted.goal, caller.user_id)
    return await _to_view(hub, note.id, caller.user_id)


@router.post("/notes/{note_id}/delete", **document("Delete a note", 404))
async def delete_note(note_id: NoteId, hub: TheHub, caller: Caller) -> ListedNote:
    """For good. A Markdown note that it refers to stays."""
    return _to_line(await _notes(hub).delete(note_id, caller.user_id))


def _notes(hub: HubContext) -> NoteService:
    return hub.services.goals.notes


def _to_line(note: StoredNote) -> ListedNote:
    excerpt = " ".join(note.content[: _EXCERPT * 2].split())[:_EXCERPT]
    trust = "untrusted" if note.read_from else "trusted"
    return ListedNote.from_row(note, note_id=note.id, excerpt=excerpt, trust=trust)


async def _to_view(hub: HubContext, note_id: str, user_id: str) -> NoteView:
    shown = await _notes(hub).show(note_id, user_id)
    goal = shown.suggested_goal
    suggested = None if goal is None else SuggestedGoal(goal_id=goal.id, title=goal.title)
    line = _to_line(shown.note)
    return NoteView.from_row(line, trust=shown.trust, content=shown.content, suggested_goal=suggested)
