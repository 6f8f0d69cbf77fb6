"""Writes a consistent snapshot of an owner's memory to files. Imported on first use, with the database."""

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
from annabelle.servers.memory.files import json_document, markdown, pages
from annabelle.servers.memory.files.locations import write_file
from annabelle.servers.memory.files.reader import DOCUMENT
from annabelle.store.memory import contacts, profiles, projects, transfer
from annabelle.store.memory.conversations import StoredTurn
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import (
    contacts as contact_table,
    conversations as turn_table,
    facts as fact_table,
    profile_history as version_table,
    project_sources as source_table,
    projects as project_table,
)

MAX_ROWS = 1_000_000
CONVERSATIONS = "conversations"
_STOP_EVERY = 200

T = TypeVar("T")


class MemoryExport:
    def __init__(self, connection: Connection, owner: Owner, folder: Path, zone: ZoneInfo, stop: StopSign) -> None:
        self._connection, self._owner, self._folder, self._zone, self._stop = connection, owner, folder, zone, stop
        self.files: list[Path] = []
        self.counts: dict[str, int] = {}
        transfer.use_one_snapshot(connection)

    def write_document(self, include_conversations: bool) -> None:
        """Write everything to one JSON file, with history and origin."""
        profile = profiles.get_profile(self._connection, self._owner)
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
            (name, self._iter_rows(name, transfer.export_rows(self._connection, self._owner, tables[name])))
            for name in tables
        )
        self._write(self._folder / DOCUMENT, json_document.write_document(about, whole, sections))

    def write_pages(self, include_conversations: bool) -> None:
        self._write_profile()
        self._write_facts()
        self._write_people()
        if include_conversations:
            self._write_conversations()

    def _write_profile(self) -> None:
        profile = profiles.get_profile(self._connection, self._owner)
        page = pages.write_profile(profile.content, profile.version)
        self._write(self._folder / "profile.md", [page])

    def _write_facts(self) -> None:
        at, through = now(), transfer.newest_fact_id(self._connection, self._owner)
        state = transfer.read_facts_state(self._connection, self._owner, through, at)
        groups = (
            (
                category,
                self._count_rows("facts", transfer.export_current_facts(self._connection, self._owner, category)),
            )
            for category in pages.CATEGORIES
        )
        self._write(self._folder / "facts.md", pages.write_facts(through, at, state.digest, groups))

    def _write_people(self) -> None:
        people = contacts.list_contacts(self._connection, self._owner, contacts.ContactFilter(), MAX_ROWS)[::-1]
        addresses = {contact.id: contact.email for contact in people}
        self._write(self._folder / "contacts.md", pages.write_contacts(self._count_rows("contacts", people)))
        work = projects.list_projects(self._connection, self._owner, projects.ProjectFilter(), MAX_ROWS)[::-1]
        sources: dict[int, list[projects.ProjectSource]] = {}
        for source in projects.list_sources(self._connection, self._owner, None, None, MAX_ROWS):
            sources.setdefault(source.project_id, []).append(source)
        page = pages.write_projects(self._count_rows("projects", work), addresses, sources)
        self._write(self._folder / "projects.md", page)

    def _write_conversations(self) -> None:
        folder = self._folder / CONVERSATIONS
        said = self._count_rows("conversations", transfer.export_turns(self._connection, self._owner))
        written: set[str] = set()
        for month, turns in groupby(said, key=self._month):
            page = markdown.write_month(month, turns, self._zone, self._owner.agent_id)
            written.add(f"{month}.md")
            self._write(folder / f"{month}.md", page)
        for old in folder.glob("????-??.md"):
            if old.name not in written:  # the turns of that month were forgotten
                old.unlink(missing_ok=True)

    def _month(self, turn: StoredTurn) -> str:
        return f"{turn.said_at.astimezone(self._zone):%Y-%m}"

    def _iter_rows(self, name: str, rows: Iterable[JsonObject]) -> Iterator[JsonObject]:
        for row in self._count_rows(name, rows):
            if name == "profile_history":
                row = {("content" if key == "profile" else key): value for key, value in row.items() if key != "id"}
            yield row

    def _count_rows(self, name: str, things: Iterable[T]) -> Iterator[T]:
        self.counts.setdefault(name, 0)
        for thing in things:
            if self.counts[name] % _STOP_EVERY == 0:
                self._stop.check()
            self.counts[name] += 1
            yield thing

    def _write(self, path: Path, pieces: Iterable[str]) -> None:
        write_file(path, pieces)
        self.files.append(path)
