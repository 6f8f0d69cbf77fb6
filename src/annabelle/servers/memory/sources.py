"""Tools for project sources: where a project also lives, such as a tracker or a repository."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.memory import SourceStatus, SourceType, Trust
from annabelle.core.messages import now
from annabelle.servers.kit import Result, current_call, deferred_module, tool
from annabelle.servers.memory.dates import first_moment, zone_of
from annabelle.servers.memory.opening import Opening
from annabelle.servers.memory.ownership import origin_of, owner_of
from annabelle.servers.memory.wording import Label, Name, RowId, given, refuse_secrets, trust_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from annabelle.store.memory import project_sources, projects
else:
    projects = deferred_module("annabelle.store.memory.projects")
    project_sources = deferred_module("annabelle.store.memory.project_sources")

MAX_LISTED = 200

Agent = Annotated[str | None, Field(description="The agent whose projects are meant; leave it out for your own")]
ProjectId = Annotated[RowId, Field(description="The project, by its id")]
Server = Annotated[Name, Field(description="The MCP server the project lives at, as in github")]


class SourceRow(BaseModel):
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

    def line(self) -> str:
        there = " ".join(part for part in (self.external_project_name, self.external_project_id) if part)
        seen = f", checked {self.last_checked_at:%Y-%m-%d %H:%M}" if self.last_checked_at else ""
        name = f"{self.mcp_name} ({there})" if there else self.mcp_name
        return f"{self.id}  project {self.project_id} at {name}: {self.last_status}{seen}"


class SourceKept(Result):
    """A project source and what became of it."""

    source: SourceRow
    outcome: str = Field(description="linked, changed, unlinked or checked")
    trust: Trust

    def text(self) -> str:
        return f"{self.outcome.capitalize()}: {self.source.line()}"


class SourceList(Result):
    """Project sources in the order they were linked."""

    sources: list[SourceRow]
    more: bool = Field(description="Whether there are others that fit")
    trust: Trust

    def text(self) -> str:
        lines = [source.line() for source in self.sources] or ["No project source fits."]
        return "\n".join([*lines, *(["There are more: narrow it down, or raise limit."] if self.more else [])])


class SourceTools:
    """link_project_source, unlink_project_source, list_project_sources and update_project_source_status."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def link_project_source(
        self,
        project_id: ProjectId,
        mcp_name: Server,
        external_project_id: Annotated[Label | None, Field(description="The project's id over there")] = None,
        external_project_name: Annotated[Label | None, Field(description="The project's name over there")] = None,
        source_type: Annotated[SourceType, Field(description="auto when it was found rather than named")] = "manual",
        agent_id: Agent = None,
    ) -> SourceKept:
        """Note that a project also lives at an MCP server. A second call for the same server changes what is given."""
        call = current_call()
        owner, (trust, _) = owner_of(call, agent_id), origin_of(call)
        values = given(external_project_id=external_project_id, external_project_name=external_project_name)
        refuse_secrets("project source", values)
        values["source_type"] = source_type

        def change(connection: Connection) -> SourceKept:
            if trust == "untrusted":  # what others call it is part of the project from now on
                projects.change(connection, owner, project_id, {"trust": trust})
            source, new = project_sources.link(connection, owner, project_id, mcp_name, values)
            outcome = "linked" if new else "changed"
            return SourceKept(source=SourceRow.model_validate(source), outcome=outcome, trust=source.trust)

        return await (await self._opening.library()).database.write(change)

    @tool(read_only=False, destructive=True, idempotent=True, open_world=False)
    async def unlink_project_source(
        self, project_id: ProjectId, mcp_name: Server, agent_id: Agent = None
    ) -> SourceKept:
        """Remove the note that a project lives at an MCP server. Nothing changes over there."""
        owner = owner_of(current_call(), agent_id)
        library = await self._opening.library()
        gone = await library.database.write(lambda c: project_sources.unlink(c, owner, project_id, mcp_name))
        return SourceKept(source=SourceRow.model_validate(gone), outcome="unlinked", trust=gone.trust)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_project_sources(
        self,
        project_id: Annotated[RowId | None, Field(description="Only this project")] = None,
        mcp_name: Annotated[Name | None, Field(description="Only this MCP server")] = None,
        limit: Annotated[int, Field(ge=1, le=MAX_LISTED, description="How many at most")] = 50,
        agent_id: Agent = None,
    ) -> SourceList:
        """List where projects live and how the last look at each went."""
        owner = owner_of(current_call(), agent_id)
        library = await self._opening.library()
        found = await library.database.read(
            lambda c: project_sources.listing(c, owner, project_id, mcp_name, limit + 1)
        )
        rows = [SourceRow.model_validate(source) for source in found[:limit]]
        return SourceList(
            sources=rows, more=len(found) > limit, trust=trust_of(*(source.trust for source in found[:limit]))
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
    ) -> SourceKept:
        """Note how a look at a project source went."""
        owner = owner_of(current_call(), agent_id)
        zone = zone_of(self._opening.config.timezone)
        at = now() if last_checked_at is None else first_moment(last_checked_at, zone, "last_checked_at")
        library = await self._opening.library()
        seen = await library.database.write(
            lambda c: project_sources.checked(c, owner, project_source_id, last_status, at)
        )
        return SourceKept(source=SourceRow.model_validate(seen), outcome="checked", trust=seen.trust)
