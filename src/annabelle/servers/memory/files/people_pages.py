"""The pages of contacts and projects: a section each, with a bullet for every field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from annabelle.core.tools import JsonObject
from annabelle.servers.memory.files.checking import problem_of
from annabelle.servers.memory.files.marks import Mark, bad_line, check_of, escaped, take_mark, unescaped
from annabelle.servers.memory.files.outline import END, Page, Section, bullet, head
from annabelle.servers.memory.files.rows import ContactEntry, ProjectEntry

if TYPE_CHECKING:
    from annabelle.store.memory.contacts import Contact
    from annabelle.store.memory.project_sources import ProjectSource
    from annabelle.store.memory.projects import Project

CONTACTS, PROJECTS = "contacts", "projects"

_INTRO = """# {title}

Change a field, or add a section of the same shape, then import this file again. Leave the comment behind a name as it
is: it says which row the section is. A section that is gone changes nothing.{more}
"""
_PEOPLE = " People are named by their address; sources are\nshown, not imported."

_NOT_FIELDS = ("id", "check", "trust", "kind")

Entry = TypeVar("Entry", ContactEntry, ProjectEntry)


def contact_check(contact: Contact | ContactEntry) -> str:
    return check_of(
        contact.name,
        contact.email.strip().lower(),
        contact.company or "",
        contact.role or "",
        contact.type,
        contact.notes or "",
    )


def project_check(project: Project | ProjectEntry, primary: str | None, participants: Iterable[str]) -> str:
    people = [primary or "", *sorted(participants)]
    texts = (project.description or "", project.company or "", project.priority or "")
    return check_of(project.name, project.status, project.type, *texts, people)


def write_contacts(contacts: Iterable[Contact]) -> Iterator[str]:
    """The page of contacts, piece by piece."""
    yield f"{_INTRO.format(title='Contacts', more='')}\n{head(CONTACTS)}\n"
    for contact in contacts:
        fields = {"email": contact.email, "company": contact.company, "role": contact.role}
        fields |= {"type": contact.type, "notes": contact.notes}
        yield _section(contact.name, Mark(contact.id, contact.trust, contact_check(contact)), fields)
    yield f"\n{END.format(what=CONTACTS)}\n"


def write_projects(
    projects: Iterable[Project], addresses: Mapping[int, str], sources: Mapping[int, list[ProjectSource]]
) -> Iterator[str]:
    """The page of projects, piece by piece."""
    yield f"{_INTRO.format(title='Projects', more=_PEOPLE)}\n{head(PROJECTS)}\n"
    for project in projects:
        primary = addresses.get(project.primary_contact_id) if project.primary_contact_id else None
        people = [addresses[one] for one in project.participants if one in addresses]
        fields: dict[str, str | None] = {"status": project.status, "type": project.type, "priority": project.priority}
        fields |= {"company": project.company, "primary contact": primary, "participants": ", ".join(people)}
        fields |= {"description": project.description}
        fields |= {"sources": ", ".join(source.mcp_name for source in sources.get(project.id, []))}
        yield _section(project.name, Mark(project.id, project.trust, project_check(project, primary, people)), fields)
    yield f"\n{END.format(what=PROJECTS)}\n"


def read_contacts(page: Page) -> Iterator[tuple[int, ContactEntry]]:
    """The contacts of a page, with the lines they begin at."""
    return (_entry(section, ContactEntry) for section in page.sections)


def read_projects(page: Page) -> Iterator[tuple[int, ProjectEntry]]:
    """The projects of a page, with the lines they begin at."""
    return (_entry(section, ProjectEntry) for section in page.sections)


def _section(title: str, mark: Mark, fields: Mapping[str, str | None]) -> str:
    lines = [bullet(f"{name}: {escaped(value or '')}".rstrip()) for name, value in fields.items()]
    return "\n".join(["", f"## {escaped(title)} {mark}", "", *lines, ""])


def _entry(section: Section, model: type[Entry]) -> tuple[int, Entry]:
    title, mark = take_mark(section.title, section.line)
    values: JsonObject = {"name": unescaped(title)}
    if mark is not None:
        values |= {"id": mark.id, "check": mark.check, "trust": mark.trust}
    for item in section.items:
        name, colon, value = item.text.partition(":")
        field = "_".join(name.lower().split())
        if not colon or field not in (*model.model_fields, "sources") or field in _NOT_FIELDS:
            raise bad_line(item.line, "it is not a field of this page", "Write it as `- email: ada@example.org`.")
        if item.children:
            raise bad_line(item.children[0].line, "a field has no bullets below it", "Put it all on one line.")
        text = unescaped(take_mark(value.strip(), item.line)[0])
        if field == "participants":
            values[field] = [one.strip() for one in text.split(",") if one.strip()]
        elif text and field != "sources":
            values[field] = text
    try:
        return section.line, model.model_validate(values)
    except ValidationError as error:
        raise bad_line(section.line, problem_of(error)) from error
