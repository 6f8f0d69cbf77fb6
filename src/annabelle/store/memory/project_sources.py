"""Project sources: where a project also lives, one row per project and server."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, delete, select, update

from annabelle.core.errors import NotFound
from annabelle.core.memory import SourceStatus, SourceType, Trust
from annabelle.core.messages import now
from annabelle.store.memory import projects
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import project_sources
from annabelle.store.memory.tables import projects as project_table
from annabelle.store.statements import InsertNew, Values

_insert = InsertNew(project_sources, ("project_id", "mcp_name"))
_rows = select(project_sources, project_table.c.trust).join_from(project_sources, project_table)


@dataclass(frozen=True, slots=True)
class ProjectSource:
    """A project as another server knows it, and how the last look at it went. It is trusted as its project is."""

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


def link(
    connection: Connection, owner: Owner, project_id: int, mcp_name: str, values: Values
) -> tuple[ProjectSource, bool]:
    """Tie a project to a server, and whether that is new; a second time changes what is named."""
    projects.get(connection, owner, project_id)
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
    made = _insert.one(connection, row)
    if made is None:
        one = (owner.of(project_sources), project_sources.c.project_id == project_id)
        changed = update(project_sources).where(*one, project_sources.c.mcp_name == mcp_name)
        connection.execute(changed.values({**values, "updated_at": at}))
    return _find(connection, owner, project_id, mcp_name), made is not None


def unlink(connection: Connection, owner: Owner, project_id: int, mcp_name: str) -> ProjectSource:
    """Untie a project from a server; gives back what was there."""
    projects.get(connection, owner, project_id)
    gone = _find(connection, owner, project_id, mcp_name)
    connection.execute(delete(project_sources).where(owner.of(project_sources), project_sources.c.id == gone.id))
    return gone


def listing(
    connection: Connection, owner: Owner, project_id: int | None, mcp_name: str | None, limit: int
) -> list[ProjectSource]:
    """The sources that fit, in the order they were linked."""
    query = _rows.where(owner.of(project_sources)).order_by(project_sources.c.id).limit(limit)
    if project_id is not None:
        projects.get(connection, owner, project_id)
        query = query.where(project_sources.c.project_id == project_id)
    if mcp_name is not None:
        query = query.where(project_sources.c.mcp_name == mcp_name)
    return [_source(row) for row in connection.execute(query).mappings()]


def checked(connection: Connection, owner: Owner, source_id: int, status: SourceStatus, at: datetime) -> ProjectSource:
    """Note how a look at the source went."""
    one = (owner.of(project_sources), project_sources.c.id == source_id)
    new = {"last_status": status, "last_checked_at": at, "updated_at": now()}
    connection.execute(update(project_sources).where(*one).values(new))
    row = connection.execute(_rows.where(*one)).mappings().first()
    if row is None:
        raise NotFound(
            f"There is no project source {source_id}.", hint="list_project_sources shows the ones there are."
        )
    return _source(row)


def _find(connection: Connection, owner: Owner, project_id: int, mcp_name: str) -> ProjectSource:
    query = _rows.where(
        owner.of(project_sources), project_sources.c.project_id == project_id, project_sources.c.mcp_name == mcp_name
    )
    row = connection.execute(query).mappings().first()
    if row is None:
        raise NotFound(
            f"Project {project_id} is not linked to {mcp_name}.", hint="list_project_sources shows the links."
        )
    return _source(row)


def _source(row: RowMapping) -> ProjectSource:
    return ProjectSource(**{field: row[field] for field in ProjectSource.__dataclass_fields__})
