"""Imports all rows of a file in order of dependency."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, TypeVar, cast

from sqlalchemy import Connection

from annabelle.core.errors import InvalidArguments
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Trust
from annabelle.servers.memory.arguments import lowest_trust
from annabelle.servers.memory.files.markdown import checksum
from annabelle.servers.memory.files.pages import contact_checksum, project_checksum
from annabelle.servers.memory.files.rows import (
    AnyImportRow,
    ContactEntry,
    ContactFields,
    ContactImportRow,
    DocumentRow,
    PageEntry,
    ProfilePage,
    ProfileRow,
    ProfileVersionRow,
    ProjectEntry,
    ProjectFields,
    ProjectImportRow,
    SourceImportRow,
)
from annabelle.servers.memory.importer.facts import FactImporter
from annabelle.servers.memory.importer.import_context import ImportSource, ImportTally, RowImporter
from annabelle.servers.memory.profile_document import (
    changed_fields,
    difference,
    iter_leaves,
    merge_updates,
    refuse_untrusted_persona,
    untrusted_after,
    validate_profile,
)
from annabelle.store.memory import contacts, profiles, projects
from annabelle.store.memory.contacts import Contact
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.profiles import Profile, ProfileChangeReason, ProfileVersion
from annabelle.store.memory.projects import Project

Row = TypeVar("Row", Contact, Project)


@dataclass(frozen=True, slots=True)
class _NamedTable(Generic[Row]):
    """How contacts and projects are stored: what they are called in the outcome, and their fields on a page."""

    name: str
    fields: tuple[str, ...]
    create: Callable[[Connection, Owner, JsonObject], Row]
    change: Callable[[Connection, Owner, int, JsonObject], Row]

    def values(self, row: ContactFields | ProjectFields | Contact | Project) -> JsonObject:
        return {name: getattr(row, name) or None for name in self.fields}


_CONTACTS = _NamedTable(
    "contacts",
    ("name", "email", "company", "role", "type", "notes"),
    contacts.create_contact,
    contacts.change_contact,
)
_PROJECTS = _NamedTable(
    "projects",
    ("name", "status", "type", "description", "company", "priority"),
    projects.create_project,
    projects.change_project,
)


class PeopleImporter(RowImporter):
    def __init__(self, connection: Connection, source: ImportSource, tally: ImportTally) -> None:
        super().__init__(connection, source, tally)
        self._contacts: dict[int, int] = {}
        self._projects: dict[int, int] = {}

    def import_contact(self, row: ContactImportRow) -> None:
        old = contacts.find_by_email(self._connection, self._owner, row.email)
        values = _CONTACTS.values(row)
        differs = old is not None and values != _CONTACTS.values(old)
        self._contacts[row.id] = self._import_named(_CONTACTS, old, row, values, differs)

    def import_project(self, row: ProjectImportRow) -> None:
        """Import a project of a document. Its contacts must be imported before."""
        old = projects.find_by_name(self._connection, self._owner, row.name)
        people: JsonObject = {
            "primary_contact_id": self._contacts.get(row.primary_contact_id or 0),
            "participants": [self._contacts[one] for one in row.participants if one in self._contacts],
        }
        self._projects[row.id] = self._import_named(_PROJECTS, old, row, {**_PROJECTS.values(row), **people}, True)

    def _import_named(
        self, table: _NamedTable[Row], old: Row | None, row: DocumentRow, values: JsonObject, differs: bool
    ) -> int:
        """Add a row of a document, or change the one of its name if the document's is newer. Returns its id."""
        trust = self._source.limit_trust(row.trust)
        values = {**values, "updated_at": row.updated_at}
        if old is None:
            values["created_at"] = row.created_at
            return self._add(table, values, trust, cast("JsonObject", row.origin))
        if differs and row.updated_at > old.updated_at:
            self._change(table, old, values, trust)
        else:
            self._tally.count(table.name, "known")
        return old.id

    def import_contact_entry(self, row: ContactEntry) -> None:
        old = contacts.find_contact(self._connection, self._owner, row.id) if row.id else None
        if old is None or contact_checksum(old) != row.check:
            old = contacts.find_by_email(self._connection, self._owner, row.email)
        check = contact_checksum(row)
        if old is not None and check in (row.check, contact_checksum(old)):
            self._tally.count("contacts", "unchanged")
        else:
            self._import_edited(_CONTACTS, old, row, _CONTACTS.values(row), check)

    def import_project_entry(self, row: ProjectEntry) -> None:
        old = projects.find_project(self._connection, self._owner, row.id) if row.id else None
        if old is None or self._checksum(old) != row.check:
            old = projects.find_by_name(self._connection, self._owner, row.name)
        check = project_checksum(row, row.primary_contact, row.participants)
        if old is not None and check in (row.check, self._checksum(old)):
            self._tally.count("projects", "unchanged")
            return
        people: JsonObject = {
            "primary_contact_id": self._require_contact(row, row.primary_contact) if row.primary_contact else None,
            "participants": [self._require_contact(row, one) for one in dict.fromkeys(row.participants)],
        }
        self._import_edited(_PROJECTS, old, row, {**_PROJECTS.values(row), **people}, check)

    def _import_edited(
        self, table: _NamedTable[Row], old: Row | None, row: PageEntry, values: JsonObject, check: str
    ) -> None:
        """Add or change a row that a person edited. One as it was exported keeps the trust of its export."""
        if old is not None:
            self._change(table, old, values, self._source.trust)
        else:
            trust = self._source.limit_trust(row.trust) if check == row.check else self._source.trust
            self._add(table, values, trust, self._source.file_origin())

    def _add(self, table: _NamedTable[Row], values: JsonObject, trust: Trust, origin: JsonObject) -> int:
        label = {"trust": trust, "origin": self._source.merge_origin(origin)}
        self._tally.count(table.name, "added")
        return table.create(self._connection, self._owner, {**values, **label}).id

    def _change(self, table: _NamedTable[Row], old: Row, values: JsonObject, trust: Trust) -> None:
        origin = {**self._source.file_origin(), "before": table.values(old)}
        label = {"trust": lowest_trust(old.trust, trust), "origin": origin}
        table.change(self._connection, self._owner, old.id, {**values, **label})
        self._tally.count(table.name, "changed")

    def _checksum(self, project: Project) -> str:
        """Checksum as on the projects page, with email addresses for people."""
        people = [*project.participants, *([project.primary_contact_id] if project.primary_contact_id else [])]
        found = {one: contacts.find_contact(self._connection, self._owner, one) for one in people}
        known = {number: contact.email for number, contact in found.items() if contact is not None}
        participants = [known[one] for one in project.participants if one in known]
        return project_checksum(project, known.get(project.primary_contact_id or 0), participants)

    def _require_contact(self, row: ProjectEntry, email: str) -> int:
        found = contacts.find_by_email(self._connection, self._owner, email)
        if found is None:
            raise InvalidArguments(
                f"The project {row.name!r} names {email}, who is no contact. Nothing was imported.",
                hint="Add the contact to contacts.md and import that page first, or both pages as a folder.",
            )
        return found.id

    def import_source(self, row: SourceImportRow) -> None:
        project = self._projects.get(row.project_id)
        if project is None:
            return
        known = projects.list_sources(self._connection, self._owner, project, row.mcp_name, 1)
        if not known:
            values = row.model_dump(exclude={"kind", "project_id", "mcp_name"})
            projects.link_source(self._connection, self._owner, project, row.mcp_name, values)
        self._tally.count("project sources", "known" if known else "added")


class ProfileImporter(RowImporter):
    def __init__(self, connection: Connection, source: ImportSource, tally: ImportTally) -> None:
        super().__init__(connection, source, tally)
        self._versions: list[ProfileVersion] = []

    def import_version(self, row: ProfileVersionRow) -> None:
        """Collect a version of the profile. `import_row` stores them."""
        origin = {**cast("JsonObject", row.origin), "import": {"file": self._source.name}}
        content = cast("JsonObject", row.content)
        self._versions.append(ProfileVersion(row.version, content, row.reason, row.trust, origin, row.changed_at))

    def import_row(self, row: ProfileRow) -> None:
        held = profiles.lock_profile(self._connection, self._owner)
        content = validate_profile(cast("JsonObject", row.content))
        versions = sorted(self._versions, key=lambda version: version.version)
        if held.version == 0 and versions and self._source.trust == "trusted":
            profiles.import_history(self._connection, self._owner, versions)
            self._tally.count("profile versions", "added", len(versions))
            held = profiles.lock_profile(self._connection, self._owner)
        newer = held.updated_at is None or (row.updated_at is not None and row.updated_at > held.updated_at)
        if newer and content:
            # Untrusted fields are recorded with their version.
            doubtful = next((one.untrusted for one in versions if one.version == row.version), frozenset[str]())
            self._store(held, merge_updates(held.content, difference(held.content, content)), doubtful)
        elif content:
            self._tally.count("profile", "unchanged")

    def import_page(self, row: ProfilePage) -> None:
        """Apply the changes made on the profile page, keeping other changes made since its export."""
        held = profiles.lock_profile(self._connection, self._owner)
        content = cast("JsonObject", row.content)
        base = self._base(row)
        updates = content if base is None else difference(base, content)
        self._store(held, merge_updates(held.content, updates))

    def _base(self, row: ProfilePage) -> JsonObject | None:
        if row.version is None:
            return None
        past = profiles.get_version(self._connection, self._owner, row.version)
        content = past.content if past else JsonObject()
        return content if (past or row.version == 0) and checksum(content) == row.check else None

    def _store(self, held: Profile, content: JsonObject, doubtful: frozenset[str] = frozenset()) -> None:
        wanted = validate_profile(content)
        refuse_untrusted_persona(held.content, wanted, self._source.trust)
        untrusted = untrusted_after(held.content, wanted, held.untrusted, self._source.trust == "trusted")
        untrusted |= doubtful & set(changed_fields(held.content, wanted)) & dict(iter_leaves(wanted)).keys()
        why = ProfileChangeReason(f"import of {self._source.name}", self._source.trust, self._source.file_origin())
        new = profiles.write_profile(self._connection, self._owner, held, wanted, untrusted, why)
        self._tally.count("profile", "changed" if new.version != held.version else "unchanged")


def import_rows(connection: Connection, source: ImportSource, rows: Iterable[AnyImportRow]) -> ImportTally:
    """Import all rows or none: an error ends the transaction."""
    tally = ImportTally()
    people, profile = PeopleImporter(connection, source, tally), ProfileImporter(connection, source, tally)
    facts = FactImporter(connection, source, tally)
    by_kind: dict[str, Callable[..., None]] = {
        "contact": people.import_contact,
        "contact_entry": people.import_contact_entry,
        "project": people.import_project,
        "project_entry": people.import_project_entry,
        "source": people.import_source,
        "profile_version": profile.import_version,
        "profile": profile.import_row,
        "profile_page": profile.import_page,
        "conversation": facts.import_turn,
        "listing": facts.import_listing,
    }
    in_batches: dict[str, Callable[..., None]] = {"fact": facts.import_rows, "line": facts.import_lines}
    for kind, group in groupby(rows, key=lambda row: row.kind):
        if kind in in_batches:
            in_batches[kind](group)
        else:
            for row in group:
                by_kind[kind](row)
    return tally
