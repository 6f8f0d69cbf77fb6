"""Notes of people, with or without a goal: written, kept from a link, changed, moved and found (MEM-11)."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection

from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AnnabelleError, InvalidArguments
from annabelle.core.text import read_line
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Trust
from annabelle.embeddings.metering import EmbeddingMeter
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.agents.thinker_calls import ThinkerQuestions
from annabelle.hub.base import HubBase, HubStorage
from annabelle.hub.conversations.turns import MaintenanceGate
from annabelle.hub.costs.ledger import CostLedger
from annabelle.hub.goals.goal_matcher import GoalMatcher
from annabelle.hub.goals.link_reader import UNREAD, LinkReader, LinkRequest, format_link
from annabelle.hub.goals.markdown_notes import MarkdownHit, MarkdownNotes, find_reference
from annabelle.hub.security.tool_access import ToolAccess
from annabelle.store import goals
from annabelle.store.goals import NewNote, StoredGoal, StoredNote

_log = logging.getLogger(__name__)
NoteListener = Callable[[Connection, StoredNote], None]
LINK_PATTERN: Final = r"^https?://[^\x00-\x20\x7f-\xa0/?#@]+([/?#][^\x00-\x20\x7f-\xa0]*)?$"
"""An address of the web, without a name or a password in it. Not `\\s`, which means something else in JSON Schema."""
LINK_CHARS: Final = 2_000
TITLE_CHARS: Final = 200
_LINK: Final = re.compile(LINK_PATTERN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNote:
    """A note as it is read: with the text that it refers to, and the goal that it may belong to."""

    note: StoredNote
    content: str
    trust: Trust
    suggested_goal: StoredGoal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNotes:
    """What a search has found, by where it is kept. `trouble`: why the Markdown notes were not searched.

    `before`: the note behind which it goes on; None at the end.
    """

    notes: list[StoredNote]
    markdown: list[MarkdownHit]
    before: str | None = None
    trouble: str | None = None


class NoteService:
    """Every note and goal is looked up for its owner: anyone else's is NotFound."""

    def __init__(
        self,
        *,
        base: HubBase,
        storage: HubStorage,
        access: ToolAccess,
        agents: AgentManager,
        ledger: CostLedger,
        maintenance: MaintenanceGate,
    ) -> None:
        self._base, settings = base, base.settings
        self._database, self._registry, self._maintenance = storage.database, agents.registry, maintenance
        self._secrets = base.redact.distinctive_secrets
        self._links = LinkReader(access, ThinkerQuestions(agents), settings.llm_summary_timeout_seconds)
        self._matcher = GoalMatcher(settings, base.home, EmbeddingMeter(ledger, "hub"))
        self._markdown = MarkdownNotes(access)
        self._listeners: list[NoteListener] = []
        self._tasks = BackgroundTasks()
        self._notify: Callable[[], None] = _do_nothing

    async def start(self) -> None:
        """Read the pages of links that were kept before an earlier process ended."""
        self._tasks.start(self._read_left())

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _read_left(self) -> None:
        await self._base.lifecycle.wait_ready()
        for note in await self._database.read(lambda conn: goals.list_notes_ending(conn, UNREAD)):
            async with self._maintenance.working():
                try:
                    await self._read_page(note)
                except AnnabelleError as error:
                    _log.warning("The link of %s was not read: %s", note.id, error)

    def on_note(self, listener: NoteListener) -> None:
        """Be told of every note that a person puts to a goal, new or moved, in the transaction that does so."""
        self._listeners.append(listener)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Be told once such a note is stored."""
        self._notify = listener

    async def add(self, user_id: str, title: str, content: str = "", goal: str | None = None) -> StoredNote:
        """Keeps what a person wrote, for a goal by its id or title, or for none."""
        text = self._secrets.mask(content)
        called = _clean_title(self._secrets.mask(title)) or _clean_title(text) or "Note"
        async with self._maintenance.working():
            note = await self._database.write(
                lambda conn: self._add(conn, NewNote(
                    user_id=user_id, goal_id=_find_goal_id(conn, goal, user_id), title=called, content=text,
                    written_by="user",
                ))
            )  # fmt: skip
        self._notify()
        return note

    async def add_link(self, user_id: str, url: str, goal: str | None = None) -> StoredNote:
        """Keeps a link, then reads its page into the note. If that fails, the note says why and has the link."""
        url = _check_link(self._secrets.mask(url))

        def store(conn: Connection) -> StoredNote:
            new = NewNote(
                user_id=user_id,
                goal_id=_find_goal_id(conn, goal, user_id),
                title=_clean_title(url),
                content=format_link(url, UNREAD),
                written_by="user",
                read_from=[url],
            )
            return self._add(conn, new)

        async with self._maintenance.working():
            note = await self._database.write(store)
            self._notify()
            return await self._read_page(note)

    async def _read_page(self, note: StoredNote) -> StoredNote:
        """Through the agent of its goal, or of everything else."""
        goal = await self._database.read(lambda conn: goals.find_goal(conn, note.goal_id or ""))
        agent_id = self._registry.config.default.agent_id if goal is None else goal.agent_id
        url, user_id = (note.read_from or [""])[0], note.user_id
        asked = LinkRequest(url=url, note_id=note.id, user_id=user_id, agent_id=agent_id, goal_id=note.goal_id)
        page = await self._links.read(asked)
        changes: JsonObject = {"title": _clean_title(page.title) or note.title, "content": page.content}

        def complete(conn: Connection) -> StoredNote:
            # What the person wrote meanwhile stays as it is.
            now = goals.get_note(conn, note.id, user_id)
            if (now.title, now.content) == (note.title, note.content):
                goals.change_note(conn, note.id, changes)
            return goals.get_note(conn, note.id, user_id)

        return await self._database.write(complete)

    async def change(
        self, note_id: str, user_id: str, *, title: str | None = None, content: str | None = None
    ) -> StoredNote:
        """Rewords a note. What was read before it was made stays known: its words may still be somebody else's."""
        changes: JsonObject = {}
        if title is not None:
            changes["title"] = _clean_title(self._secrets.mask(title)) or "Note"
        if content is not None:
            changes["content"] = self._secrets.mask(content)
        return await self._change(note_id, user_id, lambda _conn: changes)

    async def move(self, note_id: str, goal: str | None, user_id: str) -> StoredNote:
        """Puts a note to a goal, or to none."""
        return await self._change(note_id, user_id, lambda conn: {"goal_id": _find_goal_id(conn, goal, user_id)})

    async def delete(self, note_id: str, user_id: str) -> StoredNote:
        def remove(conn: Connection) -> StoredNote:
            note = goals.get_note(conn, note_id, user_id)
            goals.delete_note(conn, note.id)
            return note

        return await self._database.write(remove)

    async def list(self, user_id: str, goal: str | None = None, limit: int = 50) -> list[StoredNote]:
        """Newest first, of one goal or of all."""
        return (await self.search(user_id, "", goal, limit=limit, markdown=False)).notes

    async def search(
        self,
        user_id: str,
        words: str,
        goal: str | None = None,
        *,
        limit: int = 20,
        before: str | None = None,
        markdown: bool = True,
    ) -> FoundNotes:
        """Notes with all of these words, newest first; with `markdown` also the Markdown notes of the workspace.

        With `before`, the id of a note, those that are older.
        """

        def find(conn: Connection) -> list[StoredNote]:
            behind = None if before is None else goals.get_note(conn, before, user_id)
            return goals.list_notes(conn, user_id, _find_goal_id(conn, goal, user_id), words, limit, behind)

        notes = await self._database.read(find)
        found = FoundNotes(notes=notes, markdown=[], before=notes[-1].id if len(notes) == limit else None)
        if not markdown or not self._markdown.may_search(user_id):
            return found
        try:
            return replace(found, markdown=await self._markdown.search(user_id, words, limit))
        except AnnabelleError as error:
            return replace(found, trouble=f"The Markdown notes were not searched: {error.message}")

    async def show(self, note_id: str, user_id: str) -> ShownNote:
        """A note whole: a reference as the text it refers to, and one without a goal with the goal it fits."""
        note, known = await self._database.read(
            lambda conn: (goals.get_note(conn, note_id, user_id), goals.list_goals(conn, user_id))
        )
        suggested = await self._matcher.find(note, known) if note.goal_id is None else None
        content, trust = note.content, "untrusted" if note.read_from else "trusted"
        if (path := find_reference(note.content)) is not None:
            text = await self._markdown.read(user_id, path)
            content, trust = text.content, "untrusted" if trust == "untrusted" else text.trust
        return ShownNote(note=note, content=content, trust=trust, suggested_goal=suggested)

    def _add(self, conn: Connection, new: NewNote) -> StoredNote:
        note = goals.add_note(conn, new)
        self._tell(conn, note)
        return note

    async def _change(self, note_id: str, user_id: str, make: Callable[[Connection], JsonObject]) -> StoredNote:
        def change(conn: Connection) -> StoredNote:
            before = goals.get_note(conn, note_id, user_id)
            goals.change_note(conn, before.id, make(conn))
            after = goals.get_note(conn, before.id, user_id)
            if after.goal_id != before.goal_id:
                self._tell(conn, after)
            return after

        async with self._maintenance.working():
            changed = await self._database.write(change)
        self._notify()
        return changed

    def _tell(self, conn: Connection, note: StoredNote) -> None:
        if note.goal_id is not None:
            for listener in self._listeners:
                listener(conn, note)


def _do_nothing() -> None: ...


def _find_goal_id(conn: Connection, named: str | None, user_id: str) -> str | None:
    return None if named is None else goals.find_named_goal(conn, named, user_id).id


def _check_link(url: str) -> str:
    if len(url) > LINK_CHARS or _LINK.fullmatch(url) is None:
        raise InvalidArguments(
            "This is not an address of the web.", hint="It begins with https:// and has no password in it.", field="url"
        )
    return url


def _clean_title(text: str) -> str:
    """The first line of a text, as a title."""
    return read_line(text.strip().partition("\n")[0])[:TITLE_CHARS]
