"""Takes contacts, projects and project sources in. One that is here already is changed only by what is newer."""

from __future__ import annotations

from typing import cast

from annabelle.core.errors import InvalidArguments
from annabelle.core.memory import Trust
from annabelle.core.tools import JsonObject
from annabelle.servers.memory.files.people_pages import contact_check, project_check
from annabelle.servers.memory.files.rows import (
    ContactEntry,
    ContactRow,
    Person,
    ProjectEntry,
    ProjectRow,
    SourceRow,
    Work,
)
from annabelle.servers.memory.taking.tally import Taking
from annabelle.servers.memory.wording import trust_of
from annabelle.store.memory import contacts, project_sources, projects
from annabelle.store.memory.contacts import Contact
from annabelle.store.memory.projects import Project


class TakePeople:
    """The people and projects of one import."""

    def __init__(self, taking: Taking) -> None:
        self._taking = taking
        self._contacts: dict[int, int] = {}
        self._projects: dict[int, int] = {}

    def contact(self, row: ContactRow) -> None:
        """A contact of a document."""
        taking = self._taking
        old = contacts.by_email(taking.connection, taking.owner, row.email)
        times: JsonObject = {"updated_at": row.updated_at}
        if old is None:
            times |= {"created_at": row.created_at}
            made = self._new_contact(row, taking.label(row.trust), cast("JsonObject", row.origin), times)
            self._contacts[row.id] = made.id
            return
        self._contacts[row.id] = old.id
        if row.updated_at > old.updated_at and _person(row) != _person(old):
            self._change_contact(old, row, taking.label(row.trust), times)
        else:
            taking.tally.count("contacts", "known")

    def contact_entry(self, row: ContactEntry) -> None:
        """A section of the page of contacts."""
        taking = self._taking
        old = contacts.find(taking.connection, taking.owner, row.id) if row.id else None
        if old is None or contact_check(old) != row.check:
            old = contacts.by_email(taking.connection, taking.owner, row.email)
        if old is None:
            as_exported = contact_check(row) == row.check
            trust = taking.label(row.trust) if as_exported else taking.trust
            self._new_contact(row, trust, taking.from_file(), {})
        elif contact_check(row) in (row.check, contact_check(old)):
            taking.tally.count("contacts", "unchanged")
        else:
            self._change_contact(old, row, taking.trust, {})

    def _new_contact(self, row: Person, trust: Trust, origin: JsonObject, times: JsonObject) -> Contact:
        taking = self._taking
        label = {"trust": trust, "origin": taking.kept_origin(origin)}
        taking.tally.count("contacts", "added")
        return contacts.create(taking.connection, taking.owner, {**_person(row), **label, **times})

    def _change_contact(self, old: Contact, row: Person, trust: Trust, times: JsonObject) -> None:
        taking = self._taking
        label = {"trust": trust_of(old.trust, trust), "origin": {**taking.from_file(), "before": _person(old)}}
        contacts.change(taking.connection, taking.owner, old.id, {**_person(row), **label, **times})
        taking.tally.count("contacts", "changed")

    def project(self, row: ProjectRow) -> None:
        """A project of a document, whose people came before it."""
        taking = self._taking
        old = projects.by_name(taking.connection, taking.owner, row.name)
        people: JsonObject = {
            "primary_contact_id": self._contacts.get(row.primary_contact_id or 0),
            "participants": [self._contacts[one] for one in row.participants if one in self._contacts],
        }
        times: JsonObject = {"updated_at": row.updated_at}
        if old is None:
            label = {"trust": taking.label(row.trust), "origin": taking.kept_origin(cast("JsonObject", row.origin))}
            values = {**_work(row), **people, **label, **times, "created_at": row.created_at}
            self._projects[row.id] = projects.create(taking.connection, taking.owner, values).id
            taking.tally.count("projects", "added")
            return
        self._projects[row.id] = old.id
        if row.updated_at > old.updated_at:
            self._change_project(old, {**_work(row), **people, **times}, taking.label(row.trust))
        else:
            taking.tally.count("projects", "known")

    def project_entry(self, row: ProjectEntry) -> None:
        """A section of the page of projects."""
        taking = self._taking
        old = projects.find(taking.connection, taking.owner, row.id) if row.id else None
        if old is None or self._check(old) != row.check:
            old = projects.by_name(taking.connection, taking.owner, row.name)
        addresses = [contacts.same_address(one) for one in row.participants]
        primary = contacts.same_address(row.primary_contact) if row.primary_contact else None
        check = project_check(row, primary, addresses)
        if old is not None and check in (row.check, self._check(old)):
            taking.tally.count("projects", "unchanged")
            return
        people: JsonObject = {
            "primary_contact_id": self._contact(row, primary) if primary else None,
            "participants": [self._contact(row, one) for one in dict.fromkeys(addresses)],
        }
        if old is not None:
            self._change_project(old, {**_work(row), **people}, taking.trust)
            return
        trust = taking.label(row.trust) if check == row.check else taking.trust
        label = {"trust": trust, "origin": taking.kept_origin(taking.from_file())}
        projects.create(taking.connection, taking.owner, {**_work(row), **people, **label})
        taking.tally.count("projects", "added")

    def _change_project(self, old: Project, values: JsonObject, trust: Trust) -> None:
        taking = self._taking
        label = {"trust": trust_of(old.trust, trust), "origin": {**taking.from_file(), "before": _work(old)}}
        projects.change(taking.connection, taking.owner, old.id, {**values, **label})
        taking.tally.count("projects", "changed")

    def _check(self, project: Project) -> str:
        """As the page of projects has it: people by their addresses."""
        people = [*project.participants, *([project.primary_contact_id] if project.primary_contact_id else [])]
        found = {one: contacts.find(self._taking.connection, self._taking.owner, one) for one in people}
        known = {number: contact.email for number, contact in found.items() if contact is not None}
        participants = [known[one] for one in project.participants if one in known]
        return project_check(project, known.get(project.primary_contact_id or 0), participants)

    def _contact(self, row: ProjectEntry, email: str) -> int:
        found = contacts.by_email(self._taking.connection, self._taking.owner, email)
        if found is None:
            raise InvalidArguments(
                f"The project {row.name!r} names {email}, who is no contact. Nothing was imported.",
                hint="Add the contact to contacts.md and import that page first, or both pages as a folder.",
            )
        return found.id

    def source(self, row: SourceRow) -> None:
        """Where a project of the document also lives."""
        taking, project = self._taking, self._projects.get(row.project_id)
        if project is None:
            return
        known = project_sources.listing(taking.connection, taking.owner, project, row.mcp_name, 1)
        if not known:
            values = row.model_dump(exclude={"kind", "project_id", "mcp_name"})
            project_sources.link(taking.connection, taking.owner, project, row.mcp_name, values)
        taking.tally.count("project sources", "known" if known else "added")


def _person(row: Person | Contact) -> JsonObject:
    fields = {name: getattr(row, name) or None for name in ("name", "company", "role", "type", "notes")}
    return {**fields, "email": contacts.same_address(row.email)}


def _work(row: Work | Project) -> JsonObject:
    names = ("name", "status", "type", "description", "company", "priority")
    return {name: getattr(row, name) or None for name in names}
