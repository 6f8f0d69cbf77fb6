"""Reads `external-mcps.json`, in the shape the ecosystem uses; one bad entry does not affect the others (EXT-02)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Final, Literal, cast
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, model_validator

from annabelle.core.errors import ConfigMistake, first_problem
from annabelle.core.secrets.redactor import passwords_in_url
from annabelle.core.trust import ScanDirections
from annabelle.toolbox.config import UnresolvedVariable, resolve_variables
from annabelle.toolbox.manifest import ServerName, ServerProfile, is_enabled, resolve_timeout

_NAME: TypeAdapter[str] = TypeAdapter(ServerName)


class ExternalMetadata(BaseModel):
    """How the server is shown, and which directions are scanned."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    label: str | None = None
    group: str | None = Field(default=None, alias="toolGroup")
    keywords: tuple[str, ...] = ()
    scan: ScanDirections = Field(default_factory=ScanDirections, alias="guardianScan")


class ExternalEntry(BaseModel):
    """One server as the user wrote it: a command with arguments, or a URL."""

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
    metadata: ExternalMetadata = Field(default_factory=ExternalMetadata)

    @model_validator(mode="after")
    def _one_way(self) -> ExternalEntry:
        if (self.command is None) == (self.url is None):
            raise ValueError("give either a command or an url")
        return self


@dataclass(frozen=True, slots=True)
class ExternalServer:
    """A server ready to start, with all variables resolved. If it equals the running one, no restart is needed."""

    profile: ServerProfile
    entry: ExternalEntry = field(repr=False)
    """As written, before variables are resolved."""
    argv: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    url: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    problem: str | None = None
    """Why it cannot run, in one sentence; it is listed as disabled then."""


@dataclass(frozen=True, slots=True)
class ReadEntries:
    """The servers of a file, and a sentence for each entry that was dropped."""

    servers: dict[str, ExternalServer]
    mistakes: tuple[str, ...] = ()


class UnreadableEntries(Exception):
    """The file as a whole cannot be used; the last valid set stays."""


def read_entries(text: str, hub: Mapping[str, str], taken: frozenset[str], default_timeout: float) -> ReadEntries:
    """Every usable entry. `taken` are the names of built-in servers, which no entry may take over."""
    servers: dict[str, ExternalServer] = {}
    mistakes: list[str] = []
    for name, raw in _parse_table(text).items():
        try:
            server = _build_server(_check_name(name, taken), ExternalEntry.model_validate(raw), hub, default_timeout)
        except ValidationError as error:
            where, said = first_problem(error)
            mistakes.append(f"{name}: {f'{where}: ' if where else ''}{said}.")
        except (ValueError, ConfigMistake) as error:
            mistakes.append(f"{name}: {error}")
        else:
            if server is not None:
                servers[name] = server
    return ReadEntries(servers, tuple(mistakes))


def _parse_table(text: str) -> dict[str, object]:
    try:
        parsed: object = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise UnreadableEntries(f"it is not valid JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise UnreadableEntries("it must be an object with the key mcpServers")
    servers = cast("dict[str, object]", parsed).get("mcpServers", {})
    if not isinstance(servers, dict):
        raise UnreadableEntries("mcpServers must be an object")
    return cast("dict[str, object]", servers)


def _check_name(name: str, taken: frozenset[str]) -> str:
    if name.lower() in {other.lower() for other in taken}:
        raise ValueError("a built-in server has this name; choose another.")
    try:
        return _NAME.validate_python(name)
    except ValidationError:
        raise ValueError("a name is up to 40 letters, digits, - and _.") from None


def _build_server(
    name: str, entry: ExternalEntry, hub: Mapping[str, str], default_timeout: float
) -> ExternalServer | None:
    if entry.disabled or not is_enabled(name, hub):
        return None
    profile = ServerProfile(
        name=name,
        label=entry.metadata.label or name.replace("_", " ").replace("-", " ").title(),
        kind="http" if entry.url is not None else "external",
        timeout_seconds=resolve_timeout(name, entry.timeout, hub, default_timeout),
        group=entry.metadata.group or "External",
        keywords=entry.metadata.keywords,
        sensitive=entry.sensitive,
        scan=entry.metadata.scan,
        vouched=entry.trusted,
    )
    try:
        url = None if entry.url is None else resolve_variables(entry.url, hub)
        if url is not None and not url.startswith(("http://", "https://")):
            raise ValueError("its url must begin with http:// or https://.")
        return ExternalServer(
            profile=profile,
            entry=entry,
            argv=()
            if entry.command is None
            else tuple(resolve_variables(part, hub) for part in (entry.command, *entry.args)),
            env=tuple((key, resolve_variables(value, hub)) for key, value in entry.env.items()),
            url=url,
            headers=tuple((key, resolve_variables(value, hub)) for key, value in entry.headers.items()),
        )
    except UnresolvedVariable as error:
        return ExternalServer(profile, entry, problem=f"{name} is disabled: {error}.")


# Wider than for our own variables: others use names such as GITHUB_PAT or X-Auth.
_SECRET: Final = re.compile(r"auth|cookie|cred|key|pass|secret|session|signature|token|(?:^|_)pat$|(?:^|_)pwd$", re.I)
_PLACE: Final = re.compile(r"(?:file|path|dir|url|uri|host|name|id)$", re.I)
_NAMED: Final = re.compile(r"(?P<name>[\w.-]+)[\"']?\s*[:=]\s*[\"']?")
"""A name in an argument and the sign behind it: `--token=…`, `API_KEY=…`, `Authorization: …`, `"token": "…"`."""
_ENDS: Final = re.compile(r"[\"'&,;\s]")


def find_entry_secrets(server: ExternalServer) -> Iterator[str]:
    """Secrets in the environment, the headers (also without `Bearer`), the URL and the arguments."""
    query = parse_qsl(urlsplit(server.url).query) if server.url is not None else []
    for name, value in (*server.env, *server.headers, *query):
        if _is_secret(name):
            yield value
            yield value.rpartition(" ")[2]
    for value in (server.url or "", *(value for _name, value in server.env)):
        yield from passwords_in_url(value)
    yield from find_argument_secrets(server.argv)


def entry_values(server: ExternalServer) -> Iterator[str]:
    """Every value of the environment and the headers: only its owner knows which of them is a secret."""
    for _name, value in (*server.env, *server.headers):
        yield value
        yield value.rpartition(" ")[2]


def find_argument_secrets(arguments: Sequence[str]) -> Iterator[str]:
    """Secrets of a command line, in one argument or two (`--token …`), and passwords in URLs."""
    for argument in arguments:
        yield from passwords_in_url(argument)
        for named in _NAMED.finditer(argument):
            if _is_secret(named["name"]):
                value = argument[named.end() :].rstrip("\"'")
                yield from (value, value.rpartition(" ")[2], _ENDS.split(value, maxsplit=1)[0])
    for flag, value in pairwise(arguments):
        if flag.startswith("-") and not value.startswith("-") and "=" not in flag and _is_secret(flag):
            yield value


def _is_secret(name: str) -> bool:
    return _SECRET.search(name) is not None and _PLACE.search(name) is None
