"""Tools for projects and their sources at MCP servers."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import MISSING, BaseModel, ConfigDict, Field

from annabelle.core.messages import now
from annabelle.core.result_text import for_model
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Priority, ProjectStatus, ProjectType, SourceStatus, SourceType, Trust
from annabelle.servers.kit import Result, current_call, deferred_module, tool
from annabelle.servers.memory.arguments import (
    Label,
    Name,
    Notes,
    RowId,
    drop_missing,
    lowest_trust,
    refuse_secrets,
    resolve_origin,
    resolve_owner,
    start_of,
)
from annabelle.servers.memory.lazy_memory import MemoryTools

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from annabelle.store.memory import projects
else:
    projects = deferred_module("annabelle.store.memory.projects")


MAX_LISTED = 200

Agent = Annotated[str | None, Field(description="The agent whose projects are meant; leave it out for your own")]
People = Annotated[list[RowId], Field(max_length=200)]


class ProjectShown(BaseModel):
    """A project as it is shown."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

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
    created_at: datetime
    updated_at: datetime

    def to_line(self) -> str:
        people = [for_model(f"lead: contact {self.primary_contact_id}")] if self.primary_contact_id else []
        people += [for_model(f"with contacts {', '.join(map(str, self.participants))}")] if self.participants else []
        marks = [f"{self.priority} priority" if self.priority else "", self.company or "", *people]
        marks += [self.trust] if self.trust != "trusted" else []
        return f"{for_model(f'{self.id}  ')}{self.name} ({', '.join([self.status, self.type, *filter(None, marks)])})"


class ProjectSaved(Result):
    """A project that was made or changed."""

    project: ProjectShown
    outcome: str = Field(description="created or updated")
    trust: Trust

    def to_text(self) -> str:
        return f"{self.outcome.capitalize()} project {self.project.to_line()}"


class ProjectList(Result):
    """Projects, the latest change first."""

    projects: list[ProjectShown]
    more: bool = Field(description="Whether there are others that fit")
    trust: Trust

    def to_text(self) -> str:
        lines = [project.to_line() for project in self.projects] or ["No project fits."]
        return "\n".join([*lines, *(["There are more: narrow it down, or raise limit."] if self.more else [])])


class ProjectTools(MemoryTools):
    @tool(read_only=False, destructive=False, idempotent=False, open_world=False)
    async def create_project(
        self,
        name: Annotated[Name, Field(description="The project's name; one project has it")],
        agent_id: Agent = None,
        status: Annotated[ProjectStatus, Field(description="How it stands")] = "active",
        type: Annotated[ProjectType, Field(description="What it belongs to")] = "work",
        description: Annotated[Notes | None, Field(description="What it is about")] = None,
        primary_contact_id: Annotated[RowId | None, Field(description="The person to ask, by contact id")] = None,
        participants: Annotated[People | None, Field(description="Everyone in it, by contact id")] = None,
        company: Annotated[Label | None, Field(description="The company it is for")] = None,
        priority: Annotated[Priority | None, Field(description="How urgent it is")] = None,
    ) -> ProjectSaved:
        """Add a project of the user's, with the contacts in it. Contacts must exist: create_contact makes them."""
        call = current_call()
        owner, (trust, origin) = resolve_owner(call, agent_id), resolve_origin(call)
        values = drop_missing(name=name, status=status, type=type, description=description, company=company)
        values |= drop_missing(
            primary_contact_id=primary_contact_id, participants=_without_repeats(participants), priority=priority
        )
        refuse_secrets("project", values)
        row = {**values, "trust": trust, "origin": origin}
        made = await self._write(lambda c: projects.create_project(c, owner, row))
        return ProjectSaved(project=ProjectShown.model_validate(made), outcome="created", trust=made.trust)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_projects(
        self,
        agent_id: Agent = None,
        status: Annotated[ProjectStatus | None, Field(description="Only those that stand like this")] = None,
        type: Annotated[ProjectType | None, Field(description="Only this type")] = None,
        company: Annotated[Label | None, Field(description="A part of the company's name")] = None,
        contact_id: Annotated[RowId | None, Field(description="Only those this contact is in")] = None,
        priority: Annotated[Priority | None, Field(description="Only this priority")] = None,
        limit: Annotated[int, Field(ge=1, le=MAX_LISTED, description="How many at most")] = 50,
    ) -> ProjectList:
        """Find projects of the user's, by how they stand, whom they are for or who is in them."""
        owner = resolve_owner(current_call(), agent_id)
        wanted = projects.ProjectFilter(status, type, company or None, contact_id, priority)
        found = await self._read(lambda c: projects.list_projects(c, owner, wanted, limit + 1))
        rows = [ProjectShown.model_validate(project) for project in found[:limit]]
        return ProjectList(projects=rows, more=len(found) > limit, trust=lowest_trust(*(row.trust for row in rows)))

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def update_project(
        self,
        project_id: Annotated[RowId, Field(description="The project, by its id")],
        name: Annotated[Name | None, Field(description="New name")] = None,
        status: Annotated[ProjectStatus | None, Field(description="How it stands now")] = None,
        type: Annotated[ProjectType | None, Field(description="New type")] = None,
        description: Annotated[Notes | None, Field(description="New description; an empty text removes it")] = None,
        primary_contact_id: Annotated[
            RowId | MISSING | None, Field(description="The person to ask now; null for nobody")
        ] = MISSING,
        participants: Annotated[
            People | None, Field(description="Everyone in it now; an empty list for nobody")
        ] = None,
        company: Annotated[Label | None, Field(description="New company; an empty text removes it")] = None,
        priority: Annotated[
            Priority | MISSING | None, Field(description="How urgent it is now; null for no say")
        ] = MISSING,
        agent_id: Agent = None,
    ) -> ProjectSaved:
        """Change what is given of a project and leave the rest as it is."""
        call = current_call()
        owner, (trust, origin) = resolve_owner(call, agent_id), resolve_origin(call)
        values = drop_missing(name=name, status=status, type=type, description=description, company=company)
        values |= drop_missing(participants=_without_repeats(participants))
        # These two can be cleared, so null differs from a missing argument.
        values |= JsonObject() if primary_contact_id is MISSING else {"primary_contact_id": primary_contact_id}
        values |= JsonObject() if priority is MISSING else {"priority": priority}
        refuse_secrets("project", values)

        def change_project(connection: Connection) -> projects.Project:
            old = projects.get_project(connection, owner, project_id)
            before = {field: getattr(old, field) for field in values}
            label = {"trust": lowest_trust(old.trust, trust), "origin": {**origin, "before": before}}
            return projects.change_project(connection, owner, project_id, {**values, **label})

        changed = await self._write(change_project)
        return ProjectSaved(project=ProjectShown.model_validate(changed), outcome="updated", trust=changed.trust)


def _without_repeats(people: list[int] | None) -> list[int] | None:
    return None if people is None else list(dict.fromkeys(people))


ProjectId = Annotated[RowId, Field(description="The project, by its id")]
Server = Annotated[Name, Field(description="The MCP server the project lives at, as in github")]


class ProjectSourceShown(BaseModel):
    """A project source as it is shown."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    id: int
    project_id: int
    mcp_name: str
    external_project_id: str | None
    external_project_name: str | None
    source_type: SourceType
    last_status: SourceStatus
    last_checked_at: datetime | None

    def to_line(self) -> str:
        there = " ".join(
            part for part in (self.external_project_name, for_model(self.external_project_id or "")) if part
        )
        seen = f", checked {self.last_checked_at:%Y-%m-%d %H:%M}" if self.last_checked_at else ""
        name = f"{self.mcp_name} ({there})" if there else self.mcp_name
        return f"{for_model(f'{self.id}  project {self.project_id} at ')}{name}: {self.last_status}{seen}"


class ProjectSourceSaved(Result):
    """A project source and what became of it."""

    source: ProjectSourceShown
    outcome: str = Field(description="linked, changed, unlinked or checked")
    trust: Trust

    def to_text(self) -> str:
        return f"{self.outcome.capitalize()}: {self.source.to_line()}"


class ProjectSourceList(Result):
    """Project sources in the order they were linked."""

    sources: list[ProjectSourceShown]
    more: bool = Field(description="Whether there are others that fit")
    trust: Trust

    def to_text(self) -> str:
        lines = [source.to_line() for source in self.sources] or ["No project source fits."]
        return "\n".join([*lines, *(["There are more: narrow it down, or raise limit."] if self.more else [])])


class ProjectSourceTools(MemoryTools):
    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def link_project_source(
        self,
        project_id: ProjectId,
        mcp_name: Server,
        external_project_id: Annotated[Label | None, Field(description="The project's id over there")] = None,
        external_project_name: Annotated[Label | None, Field(description="The project's name over there")] = None,
        source_type: Annotated[SourceType, Field(description="auto when it was found rather than named")] = "manual",
        agent_id: Agent = None,
    ) -> ProjectSourceSaved:
        """Note that a project also lives at an MCP server. A second call for the same server changes what is given."""
        call = current_call()
        owner, (trust, _) = resolve_owner(call, agent_id), resolve_origin(call)
        values = drop_missing(external_project_id=external_project_id, external_project_name=external_project_name)
        refuse_secrets("project source", values)
        values["source_type"] = source_type

        def link_source(connection: Connection) -> ProjectSourceSaved:
            if trust == "untrusted":  # the project now contains text by others
                projects.change_project(connection, owner, project_id, {"trust": trust})
            source, new = projects.link_source(connection, owner, project_id, mcp_name, values)
            outcome = "linked" if new else "changed"
            return ProjectSourceSaved(
                source=ProjectSourceShown.model_validate(source), outcome=outcome, trust=source.trust
            )

        return await self._write(link_source)

    @tool(read_only=False, destructive=True, idempotent=True, open_world=False)
    async def unlink_project_source(
        self, project_id: ProjectId, mcp_name: Server, agent_id: Agent = None
    ) -> ProjectSourceSaved:
        """Remove the note that a project lives at an MCP server. Nothing changes over there."""
        owner = resolve_owner(current_call(), agent_id)
        gone = await self._write(lambda c: projects.unlink_source(c, owner, project_id, mcp_name))
        return ProjectSourceSaved(source=ProjectSourceShown.model_validate(gone), outcome="unlinked", trust=gone.trust)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_project_sources(
        self,
        project_id: Annotated[RowId | None, Field(description="Only this project")] = None,
        mcp_name: Annotated[Name | None, Field(description="Only this MCP server")] = None,
        limit: Annotated[int, Field(ge=1, le=MAX_LISTED, description="How many at most")] = 50,
        agent_id: Agent = None,
    ) -> ProjectSourceList:
        """List where projects live and how the last look at each went."""
        owner = resolve_owner(current_call(), agent_id)
        found = await self._read(lambda c: projects.list_sources(c, owner, project_id, mcp_name, limit + 1))
        rows = [ProjectSourceShown.model_validate(source) for source in found[:limit]]
        return ProjectSourceList(
            sources=rows, more=len(found) > limit, trust=lowest_trust(*(source.trust for source in found[:limit]))
        )

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def update_project_source_status(
        self,
        project_source_id: Annotated[RowId, Field(description="The project source, by its id")],
        last_status: Annotated[SourceStatus, Field(description="How the look at it went")],
        last_checked_at: Annotated[
            str | None, Field(max_length=40, description="When, as in 2026-01-31T08:00; by default now")
        ] = None,
        agent_id: Agent = None,
    ) -> ProjectSourceSaved:
        """Note how a look at a project source went."""
        owner = resolve_owner(current_call(), agent_id)
        at = now() if last_checked_at is None else start_of(last_checked_at, self._zone(), "last_checked_at")
        seen = await self._write(lambda c: projects.mark_source_checked(c, owner, project_source_id, last_status, at))
        return ProjectSourceSaved(source=ProjectSourceShown.model_validate(seen), outcome="checked", trust=seen.trust)
