"""Projects, and the servers each is linked to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import cast

from sqlalchemy import ColumnElement, Connection, RowMapping, Text, delete, or_, select, type_coerce, update
from sqlalchemy.exc import IntegrityError

from annabelle.core.errors import Conflict, NotFound
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Priority, ProjectStatus, ProjectType, SourceStatus, SourceType, Trust
from annabelle.store.memory import contacts
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.query_parts import contains_text
from annabelle.store.memory.tables import project_sources, projects
from annabelle.store.memory.tables import projects as project_table
from annabelle.store.portable_sql import InsertNew, RowValues

_insert_project = InsertNew(projects, ("user_id", "agent_id", "name"))


@dataclass(frozen=True, slots=True)
class Project:
    """A project; people are contact ids."""

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
class ProjectFilter:
    """Selects projects; company matches parts of words."""

    status: ProjectStatus | None = None
    type: ProjectType | None = None
    company: str | None = None
    contact_id: int | None = None
    priority: Priority | None = None


def create_project(connection: Connection, owner: Owner, values: RowValues) -> Project:
    """Adds a project; Conflict if another one has the name."""
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
    made = _insert_project.insert(connection, row)
    if made is None:
        raise _name_conflict(connection, owner, str(values["name"]))
    return get_project(connection, owner, made["id"])


def get_project(connection: Connection, owner: Owner, project_id: int) -> Project:
    """Returns a project of this owner; NotFound for anyone else's."""
    found = find_project(connection, owner, project_id)
    if found is None:
        raise NotFound(f"There is no project {project_id}.", hint="list_projects shows the ones there are.")
    return found


def find_project(connection: Connection, owner: Owner, project_id: int) -> Project | None:
    """Like `get_project`, but returns None for a missing one."""
    query = select(projects).where(owner.row_filter(projects), projects.c.id == project_id)
    row = connection.execute(query).mappings().first()
    return None if row is None else _project_from_row(row)


def find_by_name(connection: Connection, owner: Owner, name: str) -> Project | None:
    query = select(projects).where(owner.row_filter(projects), projects.c.name == name)
    row = connection.execute(query).mappings().first()
    return None if row is None else _project_from_row(row)


def change_project(connection: Connection, owner: Owner, project_id: int, values: RowValues) -> Project:
    """Changes only the given values; None clears optional ones."""
    get_project(connection, owner, project_id)
    _require_people(connection, owner, values)
    new = {"updated_at": now(), **values}
    try:
        with connection.begin_nested():
            connection.execute(
                update(projects).where(owner.row_filter(projects), projects.c.id == project_id).values(new)
            )
    except IntegrityError as error:
        raise _name_conflict(connection, owner, str(values.get("name"))) from error
    return get_project(connection, owner, project_id)


def list_projects(connection: Connection, owner: Owner, wanted: ProjectFilter, limit: int) -> list[Project]:
    """Lists matching projects, last changed first."""
    query = (
        select(projects).where(owner.row_filter(projects)).order_by(projects.c.updated_at.desc(), projects.c.id.desc())
    )
    for column, value in (("status", wanted.status), ("type", wanted.type), ("priority", wanted.priority)):
        if value is not None:
            query = query.where(projects.c[column] == value)
    if wanted.contact_id is not None:
        query = query.where(_involves_contact(wanted.contact_id))
    found: list[Project] = []
    for row in connection.execute(query).mappings():
        if contains_text(row["company"], wanted.company):
            found.append(_project_from_row(row))
            if len(found) == limit:
                break
    return found


def _involves_contact(contact_id: int) -> ColumnElement[bool]:
    written = type_coerce(projects.c.participants, Text)  # JSON list of ids without spaces: [4,17]
    return or_(
        projects.c.primary_contact_id == contact_id,
        written.in_([f"[{contact_id}]"]),
        *(written.like(shape) for shape in (f"[{contact_id},%", f"%,{contact_id},%", f"%,{contact_id}]")),
    )


def _require_people(connection: Connection, owner: Owner, values: RowValues) -> None:
    people = list(cast("list[int]", values.get("participants") or []))
    primary = values.get("primary_contact_id")
    contacts.require_contacts(connection, owner, [*people, *([primary] if isinstance(primary, int) else [])])


def _name_conflict(connection: Connection, owner: Owner, name: str) -> Conflict:
    existing = find_by_name(connection, owner, name)
    which = f"Project {existing.id}" if existing else "Another project"
    return Conflict(f"{which} is already called {name!r}.", hint="Change that one with update_project.")


def _project_from_row(row: RowMapping) -> Project:
    return Project(**{field: row[field] for field in Project.__dataclass_fields__})


_insert_source = InsertNew(project_sources, ("project_id", "mcp_name"))
_select_sources = select(project_sources, project_table.c.trust).join_from(project_sources, project_table)


@dataclass(frozen=True, slots=True)
class ProjectSource:
    """A project as another server knows it, and the result of its last check. Trusted like its project."""

    id: int
    project_id: int
    mcp_name: str
    external_project_id: str | None
    external_project_name: str | None
    source_type: SourceType
    last_status: SourceStatus
    last_checked_at: datetime | None
    created_at: datetime
    updated_at: datetime
    trust: Trust


def link_source(
    connection: Connection, owner: Owner, project_id: int, mcp_name: str, values: RowValues
) -> tuple[ProjectSource, bool]:
    """Links a project to a server, or changes the link; the flag says whether it is new."""
    get_project(connection, owner, project_id)
    at = now()
    row = {
        "external_project_id": None,
        "external_project_name": None,
        "source_type": "manual",
        "last_status": "unknown",
        "last_checked_at": None,
        "created_at": at,
        "updated_at": at,
        **values,
        **owner.columns(),
        "project_id": project_id,
        "mcp_name": mcp_name,
    }
    made = _insert_source.insert(connection, row)
    if made is None:
        one = (owner.row_filter(project_sources), project_sources.c.project_id == project_id)
        changed = update(project_sources).where(*one, project_sources.c.mcp_name == mcp_name)
        connection.execute(changed.values({**values, "updated_at": at}))
    return _find_source(connection, owner, project_id, mcp_name), made is not None


def unlink_source(connection: Connection, owner: Owner, project_id: int, mcp_name: str) -> ProjectSource:
    get_project(connection, owner, project_id)
    gone = _find_source(connection, owner, project_id, mcp_name)
    connection.execute(
        delete(project_sources).where(owner.row_filter(project_sources), project_sources.c.id == gone.id)
    )
    return gone


def list_sources(
    connection: Connection, owner: Owner, project_id: int | None, mcp_name: str | None, limit: int
) -> list[ProjectSource]:
    """Lists matching sources, in the order they were linked."""
    query = _select_sources.where(owner.row_filter(project_sources)).order_by(project_sources.c.id).limit(limit)
    if project_id is not None:
        get_project(connection, owner, project_id)
        query = query.where(project_sources.c.project_id == project_id)
    if mcp_name is not None:
        query = query.where(project_sources.c.mcp_name == mcp_name)
    return [_source_from_row(row) for row in connection.execute(query).mappings()]


def mark_source_checked(
    connection: Connection, owner: Owner, source_id: int, status: SourceStatus, at: datetime
) -> ProjectSource:
    one = (owner.row_filter(project_sources), project_sources.c.id == source_id)
    new = {"last_status": status, "last_checked_at": at, "updated_at": now()}
    connection.execute(update(project_sources).where(*one).values(new))
    row = connection.execute(_select_sources.where(*one)).mappings().first()
    if row is None:
        raise NotFound(
            f"There is no project source {source_id}.", hint="list_project_sources shows the ones there are."
        )
    return _source_from_row(row)


def _find_source(connection: Connection, owner: Owner, project_id: int, mcp_name: str) -> ProjectSource:
    query = _select_sources.where(
        owner.row_filter(project_sources),
        project_sources.c.project_id == project_id,
        project_sources.c.mcp_name == mcp_name,
    )
    row = connection.execute(query).mappings().first()
    if row is None:
        raise NotFound(
            f"Project {project_id} is not linked to {mcp_name}.", hint="list_project_sources shows the links."
        )
    return _source_from_row(row)


def _source_from_row(row: RowMapping) -> ProjectSource:
    return ProjectSource(**{field: row[field] for field in ProjectSource.__dataclass_fields__})
