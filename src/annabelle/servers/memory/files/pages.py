"""The Markdown pages of an export: facts, contacts, projects and the profile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar, cast, get_args

from pydantic import JsonValue, ValidationError

from annabelle.core.tools import JsonObject
from annabelle.core.trust import FactCategory
from annabelle.servers.memory.files.markdown import (
    END,
    OutlineItem,
    OutlineSection,
    PageOutline,
    RowMark,
    checksum,
    escape,
    format_bullet,
    format_head,
    line_error,
    take_mark,
    unescape,
)
from annabelle.servers.memory.files.rows import (
    AnyImportRow,
    ContactEntry,
    FactLine,
    FactListingRow,
    PageEntry,
    ProfilePage,
    ProjectEntry,
    describe_problem,
)
from annabelle.servers.memory.profile_document import PERSONA_FIELDS, PERSONA_LISTS, validate_profile

if TYPE_CHECKING:
    from annabelle.store.memory.contacts import Contact
    from annabelle.store.memory.facts import Fact
    from annabelle.store.memory.projects import Project, ProjectSource


FACTS_KIND = "facts"
CATEGORIES: tuple[FactCategory, ...] = get_args(FactCategory)
Entry = TypeVar("Entry", bound=PageEntry)

_FACTS_INTRO = """# Facts

What is remembered, by category. Correct a line, add one (`- …`) or move it to another category, then import this file
again. Leave the comment at a line's end as it is: it says which fact the line is. A line that is gone is retired only
when the import is told to prune. An untrusted fact was learnt from content that others wrote.
"""


def write_facts(through: int, at: datetime, digest: str, groups: Iterable[tuple[str, Iterable[Fact]]]) -> Iterator[str]:
    yield f"{_FACTS_INTRO}\n{format_head(FACTS_KIND, through=through, at=at.isoformat(), digest=digest)}\n"
    for category, facts in groups:
        yield f"\n## {category}\n\n"
        for fact in facts:
            mark = RowMark(fact.id, fact.trust, checksum(fact.fact, fact.category))
            yield f"{format_bullet(f'{escape(fact.fact)} {mark}')}\n"
    yield f"\n{END.format(what=FACTS_KIND)}\n"


def read_facts(page: PageOutline) -> Iterator[FactLine | FactListingRow]:
    """Yield the facts of a page, then its listing."""
    lines: list[FactLine] = []
    for section in page.sections:
        category = section.title.strip().lower()
        if category not in CATEGORIES:
            known = ", ".join(CATEGORIES)
            raise line_error(section.line, f"there is no category {section.title[:60]!r}", f"There are {known}.")
        lines += [_read_fact_line(item, category) for item in section.items if item.text or item.children]
    unedited = {line.id for line in lines if line.unedited}
    ids: dict[int, None] = {}
    for line in lines:
        if line.id in ids or (line.id in unedited and not line.unedited):
            # A copied line that was then changed is a new fact.
            line = line.model_copy(update={"id": None, "check": line.check if line.unedited else None})
        if line.id is not None:
            ids[line.id] = None
        yield line
    if page.kind == FACTS_KIND:
        try:
            yield FactListingRow.model_validate({**page.facts, "ids": list(ids)})
        except ValidationError as error:
            raise line_error(1, f"the comment at the top is damaged ({describe_problem(error)})") from error


def _read_fact_line(item: OutlineItem, category: str) -> FactLine:
    if item.children:
        raise line_error(item.children[0].line, "a fact has no bullets below it", "Begin it at the margin.")
    text, mark = take_mark(item.text, item.line)
    return _validate(FactLine, {"fact": unescape(text.strip()), "category": category}, mark, item.line)


def _validate(model: type[Entry], values: JsonObject, mark: RowMark | None, line: int) -> Entry:
    try:
        return model.model_validate({**values, **(asdict(mark) if mark else {})})
    except ValidationError as error:
        raise line_error(line, describe_problem(error)) from error


CONTACTS, PROJECTS = "contacts", "projects"

_PEOPLE_INTRO = """# {title}

Change a field, or add a section of the same shape, then import this file again. Leave the comment behind a name as it
is: it says which row the section is. A section that is gone changes nothing.{more}
"""
_PEOPLE = " People are named by their address; sources are\nshown, not imported."

_NOT_FIELDS = ("id", "check", "trust", "kind")


def contact_checksum(contact: Contact | ContactEntry) -> str:
    fields = (contact.name, contact.email, contact.company, contact.role, contact.type, contact.notes)
    return checksum(*(field or "" for field in fields))


def project_checksum(project: Project | ProjectEntry, primary: str | None, participants: Iterable[str]) -> str:
    people = [primary or "", *sorted(participants)]
    fields = (project.name, project.status, project.type, project.description, project.company, project.priority)
    return checksum(*(field or "" for field in fields), people)


def write_contacts(contacts: Iterable[Contact]) -> Iterator[str]:
    yield f"{_PEOPLE_INTRO.format(title='Contacts', more='')}\n{format_head(CONTACTS)}\n"
    for contact in contacts:
        fields = {name: getattr(contact, name) for name in ("email", "company", "role", "type", "notes")}
        yield _format_section(contact.name, RowMark(contact.id, contact.trust, contact_checksum(contact)), fields)
    yield f"\n{END.format(what=CONTACTS)}\n"


def write_projects(
    projects: Iterable[Project], addresses: Mapping[int, str], sources: Mapping[int, list[ProjectSource]]
) -> Iterator[str]:
    yield f"{_PEOPLE_INTRO.format(title='Projects', more=_PEOPLE)}\n{format_head(PROJECTS)}\n"
    for project in projects:
        primary = addresses.get(project.primary_contact_id) if project.primary_contact_id else None
        people = [addresses[one] for one in project.participants if one in addresses]
        fields: dict[str, str | None] = {"status": project.status, "type": project.type, "priority": project.priority}
        fields |= {"company": project.company, "primary contact": primary, "participants": ", ".join(people)}
        fields |= {"description": project.description}
        fields |= {"sources": ", ".join(source.mcp_name for source in sources.get(project.id, []))}
        yield _format_section(
            project.name, RowMark(project.id, project.trust, project_checksum(project, primary, people)), fields
        )
    yield f"\n{END.format(what=PROJECTS)}\n"


def _format_section(title: str, mark: RowMark, fields: Mapping[str, str | None]) -> str:
    lines = [format_bullet(f"{name}: {escape(value or '')}".rstrip()) for name, value in fields.items()]
    return "\n".join(["", f"## {escape(title)} {mark}", "", *lines, ""])


def _read_entry(section: OutlineSection, model: type[Entry]) -> Entry:
    title, mark = take_mark(section.title, section.line)
    values: JsonObject = {"name": unescape(title)}
    for item in section.items:
        name, colon, value = item.text.partition(":")
        field = "_".join(name.lower().split())
        if not colon or field not in (*model.model_fields, "sources") or field in _NOT_FIELDS:
            raise line_error(item.line, "it is not a field of this page", "Write it as `- email: ada@example.org`.")
        if item.children:
            raise line_error(item.children[0].line, "a field has no bullets below it", "Put it all on one line.")
        text = unescape(take_mark(value.strip(), item.line)[0])
        if field == "participants":
            values[field] = [one.strip() for one in text.split(",") if one.strip()]
        elif text and field != "sources":
            values[field] = text
    return _validate(model, values, mark, section.line)


PROFILE_KIND = "profile"
PERSONA, USER = "Persona", "About the user"

_PROFILE_INTRO = """# Profile

Who the agent is, and what it should have in mind of its user in every conversation. Edit what is below and import this
file again: it takes effect with the next message. A field without a value is left out.
"""

_decoder = json.JSONDecoder()


def write_profile(content: JsonObject, version: int) -> str:
    persona = cast("JsonObject", content.get("persona") or {})
    head = format_head(PROFILE_KIND, version=version, check=checksum(content))
    lines = [_PROFILE_INTRO, head, "", f"## {PERSONA}", ""]
    for field in PERSONA_FIELDS:
        lines += _format_field(field, persona.get(field, ""), 0)
    lines += ["", f"## {USER}", ""]
    for name, value in cast("JsonObject", content.get("user") or {}).items():
        lines += _format_field(name, value, 0)
    return "\n".join([*lines, "", END.format(what=PROFILE_KIND), ""])


def read_profile(page: PageOutline) -> ProfilePage:
    content: JsonObject = {}
    for section in page.sections:
        title = section.title.strip().casefold()
        if title == PERSONA.casefold():
            content["persona"] = _read_persona(section)
        elif title in (USER.casefold(), "user"):
            content["user"] = _read_fields(section.items)
        else:
            raise line_error(
                section.line, f"there is no section {section.title[:60]!r}", f"There are {PERSONA}, {USER}."
            )
    known = {name: value for name, value in content.items() if value}
    try:
        version = int(page.facts["version"]) if "version" in page.facts else None
        return ProfilePage(content=cast("dict[str, JsonValue]", known), version=version, check=page.facts.get("check"))
    except ValueError as error:
        raise line_error(1, "the comment at the top is damaged") from error


def _format_field(name: str, value: object, depth: int) -> list[str]:
    key = name if _is_plain_key(name) else json.dumps(name, ensure_ascii=False)
    if isinstance(value, dict) and value:
        inside = cast("JsonObject", value)
        return [
            format_bullet(f"{key}:", depth),
            *(line for name in inside for line in _format_field(name, inside[name], depth + 1)),
        ]
    if isinstance(value, list) and _is_plain_list(cast("list[object]", value)):
        return [
            format_bullet(f"{key}:", depth),
            *(format_bullet(escape(str(one)), depth + 1) for one in cast("list[str]", value)),
        ]
    if value == "":
        return [format_bullet(f"{key}:", depth)]
    text = value if isinstance(value, str) and _is_plain(value) else json.dumps(value, ensure_ascii=False)
    return [format_bullet(f"{key}: {escape(text)}", depth)]


def _is_plain_key(name: str) -> bool:
    return not any(sign in name for sign in ':"\n<>&\\') and name == name.strip()


def _is_plain(text: str) -> bool:
    """Whether a text parses back to itself."""
    if text != text.strip() or any(line != line.rstrip() or "\t" in line for line in text.split("\n")):
        return False
    return "\r" not in text and _parse_value(text) == text


def _is_plain_list(values: list[object]) -> bool:
    texts = [value for value in values if isinstance(value, str) and value and _is_plain(value) and ":" not in value]
    return bool(values) and len(texts) == len(values) and not any(text.startswith('"') for text in texts)


def _read_persona(section: OutlineSection) -> JsonObject:
    persona: JsonObject = {}
    for item in section.items:
        text, _ = take_mark(item.text, item.line)
        if not text:
            continue
        name, value = _split_field(text, item.line)
        field = "_".join(name.lower().replace("-", " ").split()).replace("behaviors", "behaviours")
        if field in PERSONA_LISTS:
            listed = _parse_value(unescape(value)) if value else None
            several = cast("list[object]", listed) if isinstance(listed, list) else [listed] if listed else []
            persona[field] = [*map(str, several), *(_read_prose(child) for child in item.children)]
        else:
            # People also write lists in prose fields.
            persona[field] = "\n".join(
                [_read_text(value), *(f"- {_read_prose(child)}" for child in item.children)]
            ).strip()
    return {field: value for field, value in persona.items() if value}


def _read_text(written: str) -> str:
    value = _parse_value(unescape(written)) if written else ""
    return value if isinstance(value, str) else unescape(written)


def _read_prose(item: OutlineItem) -> str:
    below = "".join(f"\n  - {_read_prose(child)}" for child in item.children)
    return f"{_read_text(item.text)}{below}"


def _read_fields(items: list[OutlineItem]) -> JsonObject:
    """Fields by name, without empty ones."""
    found: JsonObject = {}
    for item in items:
        text, _ = take_mark(item.text, item.line)
        if not text and not item.children:
            continue
        name, value = _split_field(text, item.line)
        if item.children:
            if value:
                raise line_error(item.line, "a field has either a value or lines below it")
            inside = _read_children(item.children)
        else:
            inside = _parse_value(unescape(value)) if value else None
        if inside is not None:
            found[name] = inside
    return found


def _read_children(children: list[OutlineItem]) -> JsonObject | list[object] | None:
    texts = [unescape(take_mark(child.text, child.line)[0]) for child in children]
    if any(child.children or ":" in text for child, text in zip(children, texts, strict=True)):
        return _read_fields(children) or None
    return [_parse_value(text) for text in texts if text] or None


def _split_field(text: str, line: int) -> tuple[str, str]:
    if text.startswith('"'):
        try:
            name, end = _decoder.raw_decode(text)
        except ValueError as error:
            raise line_error(line, "the name of the field is damaged") from error
        rest = text[end:]
    else:
        name, colon, after = text.partition(":")
        rest = colon + after
    if not isinstance(name, str) or not name.strip() or not rest.startswith(":"):
        raise line_error(line, "it is not a field", "Write it as `- name: value`.")
    return name if text.startswith('"') else name.strip(), rest[1:].strip()


def _parse_value(text: str) -> object:
    """Parse a value as JSON if possible, otherwise return the text."""
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return text


def _read_valid_profile(page: PageOutline) -> list[ProfilePage]:
    row = read_profile(page)
    validate_profile(dict(row.content))
    return [row]


READERS: dict[str, Callable[[PageOutline], Iterable[AnyImportRow]]] = {
    PROFILE_KIND: _read_valid_profile,
    FACTS_KIND: read_facts,
    CONTACTS: lambda page: (_read_entry(section, ContactEntry) for section in page.sections),
    PROJECTS: lambda page: (_read_entry(section, ProjectEntry) for section in page.sections),
}
"""Reads a page of each kind; its file is named after it."""
