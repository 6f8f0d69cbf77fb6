"""Imports all rows of a file in order of dependency."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import cast

from annabelle.core.errors import InvalidArguments
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Trust
from annabelle.servers.memory.arguments import lowest_trust
from annabelle.servers.memory.files.pages import contact_checksum, profile_checksum, project_checksum
from annabelle.servers.memory.files.rows import (
    AnyImportRow,
    ContactEntry,
    ContactFields,
    ContactImportRow,
    FactImportRow,
    FactLine,
    FactListingRow,
    ProfilePage,
    ProfileRow,
    ProfileVersionRow,
    ProjectEntry,
    ProjectFields,
    ProjectImportRow,
    SourceImportRow,
    TurnImportRow,
)
from annabelle.servers.memory.importer.facts import FactImporter
from annabelle.servers.memory.importer.import_context import ImportContext
from annabelle.servers.memory.profile_document import (
    changed_fields,
    difference,
    iter_leaves,
    merge_updates,
    refuse_untrusted_persona,
    untrusted_after,
    validate_profile,
)
from annabelle.store.memory import contacts, profiles, projects, transfer
from annabelle.store.memory.contacts import Contact
from annabelle.store.memory.profiles import Profile, ProfileChangeReason, ProfileVersion
from annabelle.store.memory.projects import Project


class PeopleImporter:
    def __init__(self, context: ImportContext) -> None:
        self._context = context
        self._contacts: dict[int, int] = {}
        self._projects: dict[int, int] = {}

    def import_contact(self, row: ContactImportRow) -> None:
        context = self._context
        old = contacts.find_by_email(context.connection, context.owner, row.email)
        times: JsonObject = {"updated_at": row.updated_at}
        if old is None:
            times |= {"created_at": row.created_at}
            made = self._new_contact(row, context.limit_trust(row.trust), cast("JsonObject", row.origin), times)
            self._contacts[row.id] = made.id
            return
        self._contacts[row.id] = old.id
        if row.updated_at > old.updated_at and _contact_values(row) != _contact_values(old):
            self._change_contact(old, row, context.limit_trust(row.trust), times)
        else:
            context.tally.count("contacts", "known")

    def import_contact_entry(self, row: ContactEntry) -> None:
        context = self._context
        old = contacts.find_contact(context.connection, context.owner, row.id) if row.id else None
        if old is None or contact_checksum(old) != row.check:
            old = contacts.find_by_email(context.connection, context.owner, row.email)
        if old is None:
            as_exported = contact_checksum(row) == row.check
            trust = context.limit_trust(row.trust) if as_exported else context.trust
            self._new_contact(row, trust, context.file_origin(), {})
        elif contact_checksum(row) in (row.check, contact_checksum(old)):
            context.tally.count("contacts", "unchanged")
        else:
            self._change_contact(old, row, context.trust, {})

    def _new_contact(self, row: ContactFields, trust: Trust, origin: JsonObject, times: JsonObject) -> Contact:
        context = self._context
        label = {"trust": trust, "origin": context.merge_origin(origin)}
        context.tally.count("contacts", "added")
        return contacts.create_contact(context.connection, context.owner, {**_contact_values(row), **label, **times})

    def _change_contact(self, old: Contact, row: ContactFields, trust: Trust, times: JsonObject) -> None:
        context = self._context
        label = {
            "trust": lowest_trust(old.trust, trust),
            "origin": {**context.file_origin(), "before": _contact_values(old)},
        }
        contacts.change_contact(context.connection, context.owner, old.id, {**_contact_values(row), **label, **times})
        context.tally.count("contacts", "changed")

    def import_project(self, row: ProjectImportRow) -> None:
        """Import a project of a document. Its contacts must be imported before."""
        context = self._context
        old = projects.find_by_name(context.connection, context.owner, row.name)
        people: JsonObject = {
            "primary_contact_id": self._contacts.get(row.primary_contact_id or 0),
            "participants": [self._contacts[one] for one in row.participants if one in self._contacts],
        }
        times: JsonObject = {"updated_at": row.updated_at}
        if old is None:
            label = {
                "trust": context.limit_trust(row.trust),
                "origin": context.merge_origin(cast("JsonObject", row.origin)),
            }
            values = {**_project_values(row), **people, **label, **times, "created_at": row.created_at}
            self._projects[row.id] = projects.create_project(context.connection, context.owner, values).id
            context.tally.count("projects", "added")
            return
        self._projects[row.id] = old.id
        if row.updated_at > old.updated_at:
            self._change_project(old, {**_project_values(row), **people, **times}, context.limit_trust(row.trust))
        else:
            context.tally.count("projects", "known")

    def import_project_entry(self, row: ProjectEntry) -> None:
        context = self._context
        old = projects.find_project(context.connection, context.owner, row.id) if row.id else None
        if old is None or self._checksum(old) != row.check:
            old = projects.find_by_name(context.connection, context.owner, row.name)
        addresses = [contacts.normalize_address(one) for one in row.participants]
        primary = contacts.normalize_address(row.primary_contact) if row.primary_contact else None
        check = project_checksum(row, primary, addresses)
        if old is not None and check in (row.check, self._checksum(old)):
            context.tally.count("projects", "unchanged")
            return
        people: JsonObject = {
            "primary_contact_id": self._require_contact(row, primary) if primary else None,
            "participants": [self._require_contact(row, one) for one in dict.fromkeys(addresses)],
        }
        if old is not None:
            self._change_project(old, {**_project_values(row), **people}, context.trust)
            return
        trust = context.limit_trust(row.trust) if check == row.check else context.trust
        label = {"trust": trust, "origin": context.merge_origin(context.file_origin())}
        projects.create_project(context.connection, context.owner, {**_project_values(row), **people, **label})
        context.tally.count("projects", "added")

    def _change_project(self, old: Project, values: JsonObject, trust: Trust) -> None:
        context = self._context
        label = {
            "trust": lowest_trust(old.trust, trust),
            "origin": {**context.file_origin(), "before": _project_values(old)},
        }
        projects.change_project(context.connection, context.owner, old.id, {**values, **label})
        context.tally.count("projects", "changed")

    def _checksum(self, project: Project) -> str:
        """Checksum as on the projects page, with email addresses for people."""
        people = [*project.participants, *([project.primary_contact_id] if project.primary_contact_id else [])]
        found = {one: contacts.find_contact(self._context.connection, self._context.owner, one) for one in people}
        known = {number: contact.email for number, contact in found.items() if contact is not None}
        participants = [known[one] for one in project.participants if one in known]
        return project_checksum(project, known.get(project.primary_contact_id or 0), participants)

    def _require_contact(self, row: ProjectEntry, email: str) -> int:
        found = contacts.find_by_email(self._context.connection, self._context.owner, email)
        if found is None:
            raise InvalidArguments(
                f"The project {row.name!r} names {email}, who is no contact. Nothing was imported.",
                hint="Add the contact to contacts.md and import that page first, or both pages as a folder.",
            )
        return found.id

    def import_source(self, row: SourceImportRow) -> None:
        context, project = self._context, self._projects.get(row.project_id)
        if project is None:
            return
        known = projects.list_sources(context.connection, context.owner, project, row.mcp_name, 1)
        if not known:
            values = row.model_dump(exclude={"kind", "project_id", "mcp_name"})
            projects.link_source(context.connection, context.owner, project, row.mcp_name, values)
        context.tally.count("project sources", "known" if known else "added")


def _contact_values(row: ContactFields | Contact) -> JsonObject:
    fields = {name: getattr(row, name) or None for name in ("name", "company", "role", "type", "notes")}
    return {**fields, "email": contacts.normalize_address(row.email)}


def _project_values(row: ProjectFields | Project) -> JsonObject:
    names = ("name", "status", "type", "description", "company", "priority")
    return {name: getattr(row, name) or None for name in names}


class ProfileImporter:
    def __init__(self, context: ImportContext) -> None:
        self._context = context
        self._versions: list[ProfileVersion] = []

    def import_version(self, row: ProfileVersionRow) -> None:
        """Collect a version of the profile. `import_row` stores them."""
        origin = {**cast("JsonObject", row.origin), "import": {"file": self._context.name}}
        content = cast("JsonObject", row.content)
        self._versions.append(ProfileVersion(row.version, content, row.reason, row.trust, origin, row.changed_at))

    def import_row(self, row: ProfileRow) -> None:
        context = self._context
        held = profiles.lock_profile(context.connection, context.owner)
        content = validate_profile(cast("JsonObject", row.content))
        versions = sorted(self._versions, key=lambda version: version.version)
        if held.version == 0 and versions and context.trust == "trusted":
            profiles.import_history(context.connection, context.owner, versions)
            context.tally.count("profile versions", "added", len(versions))
            held = profiles.lock_profile(context.connection, context.owner)
        newer = held.updated_at is None or (row.updated_at is not None and row.updated_at > held.updated_at)
        if newer and content:
            # Untrusted fields are recorded with their version.
            doubtful = next((one.untrusted for one in versions if one.version == row.version), frozenset[str]())
            self._store(held, merge_updates(held.content, difference(held.content, content)), doubtful)
        elif content:
            context.tally.count("profile", "unchanged")

    def import_page(self, row: ProfilePage) -> None:
        """Apply the changes made on the profile page, keeping other changes made since its export."""
        context = self._context
        held = profiles.lock_profile(context.connection, context.owner)
        content = cast("JsonObject", row.content)
        base = self._base(row)
        updates = content if base is None else difference(base, content)
        self._store(held, merge_updates(held.content, updates))

    def _base(self, row: ProfilePage) -> JsonObject | None:
        if row.version is None:
            return None
        past = profiles.get_version(self._context.connection, self._context.owner, row.version)
        content = past.content if past else JsonObject()
        return content if (past or row.version == 0) and profile_checksum(content) == row.check else None

    def _store(self, held: Profile, content: JsonObject, doubtful: frozenset[str] = frozenset()) -> None:
        context, wanted = self._context, validate_profile(content)
        refuse_untrusted_persona(held.content, wanted, context.trust)
        untrusted = untrusted_after(held.content, wanted, held.untrusted, context.trust == "trusted")
        untrusted |= doubtful & set(changed_fields(held.content, wanted)) & dict(iter_leaves(wanted)).keys()
        why = ProfileChangeReason(f"import of {context.name}", context.trust, context.file_origin())
        new = profiles.write_profile(context.connection, context.owner, held, wanted, untrusted, why)
        context.tally.count("profile", "changed" if new.version != held.version else "unchanged")


def import_rows(context: ImportContext, rows: Iterable[AnyImportRow]) -> None:
    """Import all rows or none: an error ends the transaction."""
    turns: dict[int, int] = {}
    people, profile, facts = PeopleImporter(context), ProfileImporter(context), FactImporter(context, turns)
    for kind, group in groupby(rows, key=lambda row: row.kind):
        if kind == "fact":  # imported in batches
            facts.import_rows(cast("Iterable[FactImportRow]", group))
        elif kind == "line":
            facts.import_lines(cast("Iterable[FactLine]", group))
        else:
            for row in group:
                _import_row(row, context, people, profile, facts, turns)


def _import_row(
    row: AnyImportRow,
    context: ImportContext,
    people: PeopleImporter,
    profile: ProfileImporter,
    facts: FactImporter,
    turns: dict[int, int],
) -> None:
    match row:
        case ContactImportRow():
            people.import_contact(row)
        case ContactEntry():
            people.import_contact_entry(row)
        case ProjectImportRow():
            people.import_project(row)
        case ProjectEntry():
            people.import_project_entry(row)
        case SourceImportRow():
            people.import_source(row)
        case ProfileVersionRow():
            profile.import_version(row)
        case ProfileRow():
            profile.import_row(row)
        case ProfilePage():
            profile.import_page(row)
        case TurnImportRow():
            _import_turn(row, context, turns)
        case FactLine():
            facts.import_lines([row])
        case FactListingRow():
            facts.import_listing(row)
        case FactImportRow():
            facts.import_rows([row])


def _import_turn(row: TurnImportRow, context: ImportContext, turns: dict[int, int]) -> None:
    values = row.model_dump(exclude={"kind", "id"}, exclude_none=True)
    values |= {"trust": context.limit_trust(row.trust)}
    known = transfer.find_existing_turn(context.connection, context.owner, values)
    number = transfer.import_turn(context.connection, context.owner, values) if known is None else known
    if row.id is not None:
        turns[row.id] = number
    context.tally.count("conversations", "added" if known is None else "known")
