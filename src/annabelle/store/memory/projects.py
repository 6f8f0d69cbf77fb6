"""Projects: what an owner works on, and with whom."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import cast

from sqlalchemy import ColumnElement, Connection, RowMapping, Text, or_, select, type_coerce, update
from sqlalchemy.exc import IntegrityError

from annabelle.core.errors import Conflict, NotFound
from annabelle.core.memory import Priority, ProjectStatus, ProjectType, Trust
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.memory import contacts
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.substrings import contains
from annabelle.store.memory.tables import projects
from annabelle.store.statements import InsertNew, Values

_insert = InsertNew(projects, ("user_id", "agent_id", "name"))


@dataclass(frozen=True, slots=True)
class Project:
    """Something an owner works on; the people are ids of contacts."""

    id: int
    name: str
    status: ProjectStatus
    type: ProjectType
    description: str | None
    primary_contact_id: int | None
    participants: list[int]
    company: str | None
    priority: Priority | None
    trust: Trust
    origin: JsonObject
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which projects a list is asked for; company may be a part of the word."""

    status: ProjectStatus | None = None
    type: ProjectType | None = None
    company: str | None = None
    contact_id: int | None = None
    priority: Priority | None = None


def create(connection: Connection, owner: Owner, values: Values) -> Project:
    """Add a project; a second one of the same name is a Conflict that names the first."""
    _require_people(connection, owner, values)
    at = now()
    row: dict[str, object] = {
        "description": None,
        "primary_contact_id": None,
        "participants": [],
        "company": None,
        "priority": None,
        "created_at": at,
        "updated_at": at,
        **values,
        **owner.columns(),
    }
    made = _insert.one(connection, row)
    if made is None:
        raise _taken(connection, owner, str(values["name"]))
    return get(connection, owner, made["id"])


def get(connection: Connection, owner: Owner, project_id: int) -> Project:
    """One project of this owner; somebody else's is as good as missing."""
    found = find(connection, owner, project_id)
    if found is None:
        raise NotFound(f"There is no project {project_id}.", hint="list_projects shows the ones there are.")
    return found


def find(connection: Connection, owner: Owner, project_id: int) -> Project | None:
    """The same, with None for one that is missing."""
    query = select(projects).where(owner.of(projects), projects.c.id == project_id)
    row = connection.execute(query).mappings().first()
    return None if row is None else _project(row)


def by_name(connection: Connection, owner: Owner, name: str) -> Project | None:
    query = select(projects).where(owner.of(projects), projects.c.name == name)
    row = connection.execute(query).mappings().first()
    return None if row is None else _project(row)


def change(connection: Connection, owner: Owner, project_id: int, values: Values) -> Project:
    """Change what is named and leave the rest; None empties what may be empty."""
    get(connection, owner, project_id)
    _require_people(connection, owner, values)
    new = {"updated_at": now(), **values}
    try:
        with connection.begin_nested():
            connection.execute(update(projects).where(owner.of(projects), projects.c.id == project_id).values(new))
    except IntegrityError as error:
        raise _taken(connection, owner, str(values.get("name"))) from error
    return get(connection, owner, project_id)


def listing(connection: Connection, owner: Owner, wanted: Wanted, limit: int) -> list[Project]:
    """The projects that fit, the latest change first."""
    query = select(projects).where(owner.of(projects)).order_by(projects.c.updated_at.desc(), projects.c.id.desc())
    for column, value in (("status", wanted.status), ("type", wanted.type), ("priority", wanted.priority)):
        if value is not None:
            query = query.where(projects.c[column] == value)
    if wanted.contact_id is not None:
        query = query.where(_involves(wanted.contact_id))
    found: list[Project] = []
    for row in connection.execute(query).mappings():
        if contains(row["company"], wanted.company):
            found.append(_project(row))
            if len(found) == limit:
                break
    return found


def _involves(contact_id: int) -> ColumnElement[bool]:
    written = type_coerce(projects.c.participants, Text)  # a list of ids without spaces: [4,17]
    return or_(
        projects.c.primary_contact_id == contact_id,
        written.in_([f"[{contact_id}]"]),
        *(written.like(shape) for shape in (f"[{contact_id},%", f"%,{contact_id},%", f"%,{contact_id}]")),
    )


def _require_people(connection: Connection, owner: Owner, values: Values) -> None:
    people = list(cast("list[int]", values.get("participants") or []))
    primary = values.get("primary_contact_id")
    contacts.require(connection, owner, [*people, *([primary] if isinstance(primary, int) else [])])


def _taken(connection: Connection, owner: Owner, name: str) -> Conflict:
    existing = by_name(connection, owner, name)
    which = f"Project {existing.id}" if existing else "Another project"
    return Conflict(f"{which} is already called {name!r}.", hint="Change that one with update_project.")


def _project(row: RowMapping) -> Project:
    return Project(**{field: row[field] for field in Project.__dataclass_fields__})
