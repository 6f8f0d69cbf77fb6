"""Tools for projects: what the user works on, and with whom."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import MISSING, BaseModel, ConfigDict, Field

from annabelle.core.memory import Priority, ProjectStatus, ProjectType, Trust
from annabelle.core.tools import JsonObject
from annabelle.servers.kit import Result, current_call, deferred_module, tool
from annabelle.servers.memory.opening import Opening
from annabelle.servers.memory.ownership import origin_of, owner_of
from annabelle.servers.memory.wording import Label, Name, Notes, RowId, given, refuse_secrets, trust_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from annabelle.store.memory import projects
else:
    projects = deferred_module("annabelle.store.memory.projects")

MAX_LISTED = 200

Agent = Annotated[str | None, Field(description="The agent whose projects are meant; leave it out for your own")]
People = Annotated[list[RowId], Field(max_length=200)]


class ProjectRow(BaseModel):
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

    def line(self) -> str:
        people = [f"lead: contact {self.primary_contact_id}"] if self.primary_contact_id else []
        people += [f"with contacts {', '.join(map(str, self.participants))}"] if self.participants else []
        marks = [f"{self.priority} priority" if self.priority else "", self.company or "", *people]
        marks += [self.trust] if self.trust != "trusted" else []
        return f"{self.id}  {self.name} ({', '.join([self.status, self.type, *filter(None, marks)])})"


class ProjectKept(Result):
    """A project that was made or changed."""

    project: ProjectRow
    outcome: str = Field(description="created or updated")
    trust: Trust

    def text(self) -> str:
        return f"{self.outcome.capitalize()} project {self.project.line()}"


class ProjectList(Result):
    """Projects, the latest change first."""

    projects: list[ProjectRow]
    more: bool = Field(description="Whether there are others that fit")
    trust: Trust

    def text(self) -> str:
        lines = [project.line() for project in self.projects] or ["No project fits."]
        return "\n".join([*lines, *(["There are more: narrow it down, or raise limit."] if self.more else [])])


class ProjectTools:
    """create_project, list_projects and update_project."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

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
    ) -> ProjectKept:
        """Add a project of the user's, with the contacts in it. Contacts must exist: create_contact makes them."""
        call = current_call()
        owner, (trust, origin) = owner_of(call, agent_id), origin_of(call)
        values = given(name=name, status=status, type=type, description=description, company=company)
        values |= given(primary_contact_id=primary_contact_id, participants=_each(participants), priority=priority)
        refuse_secrets("project", values)
        row = {**values, "trust": trust, "origin": origin}
        made = await (await self._opening.library()).database.write(lambda c: projects.create(c, owner, row))
        return ProjectKept(project=ProjectRow.model_validate(made), outcome="created", trust=made.trust)

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
        owner = owner_of(current_call(), agent_id)
        library = await self._opening.library()
        wanted = projects.Wanted(status, type, company or None, contact_id, priority)
        found = await library.database.read(lambda c: projects.listing(c, owner, wanted, limit + 1))
        rows = [ProjectRow.model_validate(project) for project in found[:limit]]
        return ProjectList(projects=rows, more=len(found) > limit, trust=trust_of(*(row.trust for row in rows)))

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
    ) -> ProjectKept:
        """Change what is given of a project and leave the rest as it is."""
        call = current_call()
        owner, (trust, origin) = owner_of(call, agent_id), origin_of(call)
        values = given(name=name, status=status, type=type, description=description, company=company)
        values |= given(participants=_each(participants))
        # These two can be emptied, so null is not the same as not being named.
        values |= JsonObject() if primary_contact_id is MISSING else {"primary_contact_id": primary_contact_id}
        values |= JsonObject() if priority is MISSING else {"priority": priority}
        refuse_secrets("project", values)

        def change(connection: Connection) -> projects.Project:
            old = projects.get(connection, owner, project_id)
            before = {field: getattr(old, field) for field in values}
            label = {"trust": trust_of(old.trust, trust), "origin": {**origin, "before": before}}
            return projects.change(connection, owner, project_id, {**values, **label})

        changed = await (await self._opening.library()).database.write(change)
        return ProjectKept(project=ProjectRow.model_validate(changed), outcome="updated", trust=changed.trust)


def _each(people: list[int] | None) -> list[int] | None:
    return None if people is None else list(dict.fromkeys(people))
