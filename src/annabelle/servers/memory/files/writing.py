"""Writes an owner's memory into files, as it is at one moment. Loaded with the database, when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.servers.kit import StopSign
from annabelle.servers.memory.files import conversations_page, document, facts_page, people_pages, profile_page
from annabelle.servers.memory.files.places import write_file
from annabelle.servers.memory.files.reading import DOCUMENT
from annabelle.store.memory import contacts, exports, profiles, project_sources, projects
from annabelle.store.memory.conversations import Turn
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import contacts as contact_table
from annabelle.store.memory.tables import conversations as turn_table
from annabelle.store.memory.tables import facts as fact_table
from annabelle.store.memory.tables import profile_history as version_table
from annabelle.store.memory.tables import project_sources as source_table
from annabelle.store.memory.tables import projects as project_table

MOST = 1_000_000
CONVERSATIONS = "conversations"
_STOP_EVERY = 200

T = TypeVar("T")


class Writing:
    """One export: what was written where, and how much of it."""

    def __init__(self, connection: Connection, owner: Owner, folder: Path, zone: ZoneInfo, stop: StopSign) -> None:
        self._connection, self._owner, self._folder, self._zone, self._stop = connection, owner, folder, zone, stop
        self.files: list[Path] = []
        self.counts: dict[str, int] = {}
        exports.hold_still(connection)

    def document(self, include_conversations: bool) -> None:
        """Everything in one file, with where it came from and how it came to be."""
        profile = profiles.get(self._connection, self._owner)
        whole: JsonObject = {"content": profile.content, "version": profile.version}
        whole |= {"updated_at": profile.updated_at.isoformat()} if profile.updated_at else {}
        tables = {
            "contacts": contact_table,
            "projects": project_table,
            "project_sources": source_table,
            "profile_history": version_table,
            **({"conversations": turn_table} if include_conversations else {}),
            "facts": fact_table,
        }
        about: JsonObject = {
            "exported_at": now().isoformat(),
            "user": self._owner.user_id,
            "agent": self._owner.agent_id,
        }
        sections = (
            (name, self._rows(name, exports.rows(self._connection, self._owner, tables[name]))) for name in tables
        )
        self._write(self._folder / DOCUMENT, document.write_document(about, whole, sections))

    def pages(self, include_conversations: bool) -> None:
        """The pages a person reads and edits."""
        self._profile()
        self._facts()
        self._people()
        if include_conversations:
            self._conversations()

    def _profile(self) -> None:
        profile = profiles.get(self._connection, self._owner)
        page = profile_page.write_profile(profile.content, profile.version)
        self._write(self._folder / "profile.md", [page])

    def _facts(self) -> None:
        at, through = now(), exports.newest_fact(self._connection, self._owner)
        state = exports.state(self._connection, self._owner, through, at)
        groups = (
            (category, self._counted("facts", exports.current_facts(self._connection, self._owner, category)))
            for category in facts_page.CATEGORIES
        )
        self._write(self._folder / "facts.md", facts_page.write_facts(through, at, state.digest, groups))

    def _people(self) -> None:
        people = contacts.listing(self._connection, self._owner, contacts.Wanted(), MOST)[::-1]
        addresses = {contact.id: contact.email for contact in people}
        self._write(self._folder / "contacts.md", people_pages.write_contacts(self._counted("contacts", people)))
        work = projects.listing(self._connection, self._owner, projects.Wanted(), MOST)[::-1]
        sources: dict[int, list[project_sources.ProjectSource]] = {}
        for source in project_sources.listing(self._connection, self._owner, None, None, MOST):
            sources.setdefault(source.project_id, []).append(source)
        page = people_pages.write_projects(self._counted("projects", work), addresses, sources)
        self._write(self._folder / "projects.md", page)

    def _conversations(self) -> None:
        folder = self._folder / CONVERSATIONS
        said = self._counted("conversations", exports.said(self._connection, self._owner))
        written: set[str] = set()
        for month, turns in groupby(said, key=self._month):
            page = conversations_page.write_month(month, turns, self._zone, self._owner.agent_id)
            written.add(f"{month}.md")
            self._write(folder / f"{month}.md", page)
        for old in folder.glob("????-??.md"):
            if old.name not in written:  # what was said then is no longer remembered
                old.unlink(missing_ok=True)

    def _month(self, turn: Turn) -> str:
        return f"{turn.said_at.astimezone(self._zone):%Y-%m}"

    def _rows(self, name: str, rows: Iterable[JsonObject]) -> Iterator[JsonObject]:
        for row in self._counted(name, rows):
            if name == "profile_history":
                row = {("content" if key == "profile" else key): value for key, value in row.items() if key != "id"}
            yield row

    def _counted(self, name: str, things: Iterable[T]) -> Iterator[T]:
        self.counts.setdefault(name, 0)
        for thing in things:
            if self.counts[name] % _STOP_EVERY == 0:
                self._stop.check()
            self.counts[name] += 1
            yield thing

    def _write(self, path: Path, pieces: Iterable[str]) -> None:
        write_file(path, pieces)
        self.files.append(path)
