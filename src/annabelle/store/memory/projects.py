"""Projects, and the servers each is linked to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import cast

from sqlalchemy import ColumnElement, Connection, Text, delete, or_, select, type_coerce, update

from annabelle.core.errors import NotFound
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Priority, ProjectStatus, ProjectType, SourceStatus, SourceType, Trust
from annabelle.store.memory import contacts
from annabelle.store.memory.named_rows import NamedRows
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.query_parts import contains_text, load_row
from annabelle.store.memory.tables import project_sources, projects
from annabelle.store.portable_sql import InsertNew, RowValues


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


_rows = NamedRows(projects, Project, "name", "{which} is already called {name!r}.")
get_project = _rows.get
find_project = _rows.find
find_by_name = _rows.find_by_name


def create_project(connection: Connection, owner: Owner, values: RowValues) -> Project:
    """Adds a project; Conflict if another one has the name."""
    _require_people(connection, owner, values)
    return _rows.add(connection, owner, {"participants": [], **values})


def change_project(connection: Connection, owner: Owner, project_id: int, values: RowValues) -> Project:
    """Changes only the given values; None clears optional ones."""
    get_project(connection, owner, project_id)  # a missing project is reported before a missing contact
    _require_people(connection, owner, values)
    return _rows.change(connection, owner, project_id, values)


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
    rows = (row for row in connection.execute(query).mappings() if contains_text(row["company"], wanted.company))
    return [load_row(Project, row) for row in islice(rows, limit)]


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


_insert_source = InsertNew(project_sources, ("project_id", "mcp_name"))
_select_sources = select(project_sources, projects.c.trust).join_from(project_sources, projects)


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
        "source_type": "manual",
        "last_status": "unknown",
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
    return [load_row(ProjectSource, row) for row in connection.execute(query).mappings()]


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
    return load_row(ProjectSource, row)


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
    return load_row(ProjectSource, row)
