"""Reads `external-mcps.json`, in the shape the ecosystem uses; each entry stands or falls alone (EXT-02)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, model_validator

from annabelle.core.errors import ConfigMistake
from annabelle.core.scans import Scan
from annabelle.toolbox.environment import Unresolved, resolve
from annabelle.toolbox.manifest import ServerName, enabled, timeout_of
from annabelle.toolbox.profile import ServerProfile

_NAME: TypeAdapter[str] = TypeAdapter(ServerName)


class Metadata(BaseModel):
    """How the server is shown, and whether the user trusts it enough to scan less than everything."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    label: str | None = None
    group: str | None = Field(default=None, alias="toolGroup")
    keywords: tuple[str, ...] = ()
    scan: Scan = Field(default_factory=Scan, alias="guardianScan")


class Entry(BaseModel):
    """One server as the user wrote it: a command with arguments, or an address."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    command: Annotated[str, StringConstraints(min_length=1)] | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    timeout: float | None = Field(default=None, gt=0)
    sensitive: bool = False
    trusted: bool = False
    disabled: bool = False
    description: str | None = None
    metadata: Metadata = Field(default_factory=Metadata)

    @model_validator(mode="after")
    def _one_way(self) -> Entry:
        if (self.command is None) == (self.url is None):
            raise ValueError("give either a command or an url")
        return self


@dataclass(frozen=True, slots=True)
class External:
    """A server ready to be started, all variables resolved. Two equal ones need no restart."""

    profile: ServerProfile
    entry: Entry = field(repr=False)
    """As it is written, before variables are put in."""
    argv: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    url: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    problem: str | None = None
    """Why it can not run, in one sentence; it is listed as disabled then."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file said: the servers, and a sentence for each entry that was dropped."""

    servers: dict[str, External]
    mistakes: tuple[str, ...] = ()


class Unreadable(Exception):
    """The file as a whole can not be used; the last good set stays."""


def read_entries(text: str, hub: Mapping[str, str], taken: frozenset[str], default_timeout: float) -> Reading:
    """Every usable entry. `taken` are the names of built-in servers, which no entry may take over."""
    servers: dict[str, External] = {}
    mistakes: list[str] = []
    for name, raw in _table(text).items():
        try:
            server = _external(_named(name, taken), Entry.model_validate(raw), hub, default_timeout)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            said = first["msg"].removeprefix("Value error, ")
            mistakes.append(f"{name}: {f'{where}: ' if where else ''}{said}.")
        except (ValueError, ConfigMistake) as error:
            mistakes.append(f"{name}: {error}")
        else:
            if server is not None:
                servers[name] = server
    return Reading(servers, tuple(mistakes))


def _table(text: str) -> dict[str, object]:
    try:
        parsed: object = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise Unreadable(f"it is not valid JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise Unreadable("it must be an object with the key mcpServers")
    servers = cast("dict[str, object]", parsed).get("mcpServers", {})
    if not isinstance(servers, dict):
        raise Unreadable("mcpServers must be an object")
    return cast("dict[str, object]", servers)


def _named(name: str, taken: frozenset[str]) -> str:
    if name.lower() in {other.lower() for other in taken}:
        raise ValueError("a built-in server has this name; choose another.")
    try:
        return _NAME.validate_python(name)
    except ValidationError:
        raise ValueError("a name is up to 40 letters, digits, - and _.") from None


def _external(name: str, entry: Entry, hub: Mapping[str, str], default_timeout: float) -> External | None:
    if entry.disabled or not enabled(name, hub):
        return None
    profile = ServerProfile(
        name=name,
        label=entry.metadata.label or name.replace("_", " ").replace("-", " ").title(),
        kind="http" if entry.url is not None else "external",
        timeout_seconds=timeout_of(name, entry.timeout, hub, default_timeout),
        group=entry.metadata.group or "External",
        keywords=entry.metadata.keywords,
        sensitive=entry.sensitive,
        scan=entry.metadata.scan,
        vouched=entry.trusted,
    )
    try:
        url = None if entry.url is None else resolve(entry.url, hub)
        if url is not None and not url.startswith(("http://", "https://")):
            raise ValueError("its url must begin with http:// or https://.")
        return External(
            profile=profile,
            entry=entry,
            argv=() if entry.command is None else tuple(resolve(part, hub) for part in (entry.command, *entry.args)),
            env=tuple((key, resolve(value, hub)) for key, value in entry.env.items()),
            url=url,
            headers=tuple((key, resolve(value, hub)) for key, value in entry.headers.items()),
        )
    except Unresolved as error:
        return External(profile, entry, problem=f"{name} is disabled: {error}.")
