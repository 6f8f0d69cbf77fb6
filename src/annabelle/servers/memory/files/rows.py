"""The rows an import file may contain, as validated models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal, cast, get_args

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from annabelle.core.tools import JsonObject
from annabelle.core.trust import (
    ContactType,
    FactCategory,
    Priority,
    ProjectStatus,
    ProjectType,
    SourceStatus,
    SourceType,
    Trust,
)
from annabelle.servers.memory.arguments import Label, Name, Notes, one_line
from annabelle.servers.memory.fact_fields import MAX_CHARACTERS
from annabelle.servers.memory.files.markdown import checksum

MAX_WORDS = 200_000

Id = Annotated[int, Field(ge=1, le=2**53)]
Check = Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]
Words = Annotated[str, Field(max_length=MAX_WORDS)]
Json = dict[str, JsonValue]
Address = Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)]


def _check_fact_words(text: str) -> str:
    words = one_line(text)
    if not any(character.isalnum() for character in words):
        raise ValueError("it has no words in it")
    return words


FactText = Annotated[str, Field(max_length=MAX_CHARACTERS), AfterValidator(_check_fact_words)]


class ImportRow(BaseModel):
    """Base of all rows. Ignores unknown fields, which a later version may write."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    checked: ClassVar[tuple[str, ...]] = ()
    """Fields whose texts may contain a secret."""

    def iter_texts(self) -> Iterable[str]:
        for name in self.checked:
            # As one text: a secret may stand in a string and its name in the one before.
            yield "\n".join(iter_strings(getattr(self, name)))


class FactImportRow(ImportRow):
    checked = ("fact", "source", "origin")
    kind: Literal["fact"] = "fact"
    id: Id | None = None
    fact: FactText
    category: FactCategory
    source: Annotated[str, Field(max_length=500)] = ""
    confidence: Annotated[float, Field(ge=0, le=1)] = 1.0
    trust: Trust = "trusted"
    origin: Json = Field(default_factory=dict[str, JsonValue])
    about: Annotated[str, Field(max_length=500)] | None = None
    valid_from: AwareDatetime | None = None
    valid_until: AwareDatetime | None = None
    created_at: AwareDatetime | None = None
    updated_at: AwareDatetime | None = None
    retired_at: AwareDatetime | None = None
    retired_because: Literal["superseded", "merged", "deleted"] | None = None
    superseded_by: Id | None = None
    last_accessed_at: AwareDatetime | None = None


class PageEntry(ImportRow):
    """A piece of a page. `id`, `check` and `trust` are as of the export."""

    id: Id | None = None
    check: Check | None = None
    trust: Trust = "trusted"


class FactLine(PageEntry):
    checked = ("fact",)
    kind: Literal["line"] = "line"
    fact: FactText
    category: FactCategory

    @property
    def unedited(self) -> bool:
        return self.check == checksum(self.fact, self.category)


class FactListingRow(ImportRow):
    """Header of an exported facts page, with the ids still on the page."""

    kind: Literal["listing"] = "listing"
    through: Annotated[int, Field(ge=0)]
    at: AwareDatetime
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    ids: list[Id]


class TurnImportRow(ImportRow):
    checked = ("user_message", "agent_response")
    kind: Literal["conversation"] = "conversation"
    id: Id | None = None
    session_id: Annotated[str, Field(max_length=300)]
    message_id: Annotated[str, Field(max_length=100)] | None = None
    speaker: Annotated[str, Field(max_length=300)] = ""
    user_message: Words
    agent_response: Words
    tags: list[str] = Field(default_factory=list[str], max_length=100)
    tools: list[str] = Field(default_factory=list[str], max_length=500)
    trust: Trust = "trusted"
    said_at: AwareDatetime
    created_at: AwareDatetime | None = None
    extracted_at: AwareDatetime | None = None


class ProfileRow(ImportRow):
    """The current profile, and when it was last changed."""

    checked = ("content",)
    kind: Literal["profile"] = "profile"
    content: Json
    version: Annotated[int, Field(ge=0)]
    updated_at: AwareDatetime | None = None


class ProfileVersionRow(ImportRow):
    checked = ("reason", "content")
    kind: Literal["profile_version"] = "profile_version"
    version: Annotated[int, Field(ge=1)]
    content: Json
    reason: Annotated[str, Field(max_length=2000)] = ""
    trust: Trust = "trusted"
    origin: Json = Field(default_factory=dict[str, JsonValue])
    changed_at: AwareDatetime


class ProfilePage(ImportRow):
    """The profile page. `version` and `check` are as of the export."""

    kind: Literal["profile_page"] = "profile_page"
    content: Json
    version: Annotated[int, Field(ge=0)] | None = None
    check: Check | None = None


class DocumentRow(ImportRow):
    """A row of a document, with its metadata."""

    id: Id
    trust: Trust = "trusted"
    origin: Json = Field(default_factory=dict[str, JsonValue])
    created_at: AwareDatetime
    updated_at: AwareDatetime


class ContactFields(ImportRow):
    checked = ("name", "company", "role", "notes")
    name: Name
    email: Annotated[Address, Field(max_length=320, pattern=r"^\s*[^@\s<>,;\"]+@[^@\s<>,;\"]+\s*$")]
    company: Label | None = None
    role: Label | None = None
    type: ContactType = "work"
    notes: Notes | None = None


class ContactImportRow(ContactFields, DocumentRow):
    kind: Literal["contact"] = "contact"


class ContactEntry(ContactFields, PageEntry):
    kind: Literal["contact_entry"] = "contact_entry"


class ProjectFields(ImportRow):
    checked = ("name", "description", "company")
    name: Name
    status: ProjectStatus = "active"
    type: ProjectType = "work"
    description: Notes | None = None
    company: Label | None = None
    priority: Priority | None = None


class ProjectImportRow(ProjectFields, DocumentRow):
    """People are ids of the same file."""

    kind: Literal["project"] = "project"
    primary_contact_id: Id | None = None
    participants: list[Id] = Field(default_factory=list[int])


class ProjectEntry(ProjectFields, PageEntry):
    """A project on a page. People are email addresses."""

    kind: Literal["project_entry"] = "project_entry"
    primary_contact: Address | None = None
    participants: list[Address] = Field(default_factory=list[str])


class SourceImportRow(ImportRow):
    """A project's location at an MCP server."""

    checked = ("external_project_id", "external_project_name")
    kind: Literal["source"] = "source"
    project_id: Id
    mcp_name: Name
    external_project_id: Label | None = None
    external_project_name: Label | None = None
    source_type: SourceType = "manual"
    last_status: SourceStatus = "unknown"
    last_checked_at: AwareDatetime | None = None


AnyImportRow = (
    ContactImportRow
    | ContactEntry
    | ProjectImportRow
    | ProjectEntry
    | SourceImportRow
    | ProfileVersionRow
    | ProfileRow
    | ProfilePage
    | TurnImportRow
    | FactImportRow
    | FactLine
    | FactListingRow
)
"""In import order: a row comes after those it refers to."""

ORDER: tuple[str, ...] = tuple(row.model_fields["kind"].default for row in get_args(AnyImportRow))

_any_row: TypeAdapter[AnyImportRow] = TypeAdapter(Annotated[AnyImportRow, Field(discriminator="kind")])


def load_row(staged: object) -> AnyImportRow:
    return _any_row.validate_python(staged)


def dump_row(row: AnyImportRow) -> JsonObject:
    return row.model_dump(mode="json", exclude_none=True)


def iter_strings(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inside in cast("JsonObject", value).values():
            yield from iter_strings(inside)
    elif isinstance(value, list):
        for inside in cast("list[object]", value):
            yield from iter_strings(inside)


def describe_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"{field} is missing"
    said = first["msg"].removeprefix("Value error, ")
    return f"{field}: {said}" if field else said
