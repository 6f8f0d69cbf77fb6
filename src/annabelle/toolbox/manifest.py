"""Reads `manifest.toml` of each built-in server into the profile the toolbox works with (EXT-01)."""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from annabelle.core.errors import ConfigMistake, first_problem
from annabelle.core.trust import ScanDirections
from annabelle.toolbox.config import ManifestFolder

ServerKind = Literal["builtin", "external", "http"]
ServerRole = Literal["guardian", "channel"]


class ChannelRules(BaseModel):
    """How the hub reads the messages of a server that is also a channel."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bot_patterns: tuple[str, ...] = Field(default=(), description="How messages of programs begin")
    chat_refresh_seconds: float = Field(default=300, gt=0, description="Interval at which all chats are looked at")
    max_message_age_seconds: float = Field(default=120, gt=0, description="Older messages are listed, not answered")


@dataclass(frozen=True, slots=True)
class ServerProfile:
    """What the toolbox knows about a server, built-in or external."""

    name: str
    label: str
    kind: ServerKind
    timeout_seconds: float
    group: str = ""
    keywords: tuple[str, ...] = ()
    role: ServerRole | None = None
    channel: ChannelRules | None = None
    """Set for a server with the role of a channel."""
    sensitive: bool = False
    scan: ScanDirections = field(default_factory=ScanDirections)
    provenance: bool = False
    """It is told where the content of a call may come from, and labels its results with their trust. Only a manifest
    can set it, never an external server."""
    takes_secrets: tuple[str, ...] = ()
    """The tools that get a secret's value instead of its handle. Only a manifest can set it."""
    vouched: bool = False
    """The owner marked an external server `trusted`: it is believed when it says what an id is."""

    @property
    def tag(self) -> str:
        """The prefix of each of its tools' descriptions (RTR-02)."""
        return f"[{self.label} | {self.group}]" if self.group else f"[{self.label}]"


_log = logging.getLogger(__name__)
_MILLISECONDS_FROM = 1000

ServerName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$")]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class ServerManifest(BaseModel):
    """A `manifest.toml`. `env` are the names of the variables the server gets, if they are set."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ServerName
    label: str
    transport: Literal["stdio"] = "stdio"
    sensitive: bool = False
    role: Literal["guardian", "channel"] | None = None
    timeout: float | None = Field(default=None, gt=0)
    group: str = ""
    keywords: tuple[str, ...] = ()
    env: tuple[VariableName, ...] = ()
    scan: ScanDirections = ScanDirections()
    provenance: bool = False
    takes_secrets: tuple[str, ...] = ()
    channel: ChannelRules | None = None

    @model_validator(mode="after")
    def _check_channel(self) -> ServerManifest:
        if (self.role == "channel") != (self.channel is not None):
            raise PydanticCustomError("channel", 'role = "channel" and a [channel] section go together')
        return self


_NOT_IN_PROFILE = ("transport", "timeout", "env")


@dataclass(frozen=True, slots=True)
class BuiltinServer:
    """An enabled built-in server."""

    profile: ServerProfile
    module: str
    variables: tuple[str, ...]


def find_builtins(
    folders: Iterable[ManifestFolder], environment: Mapping[str, str], default_timeout: float
) -> list[BuiltinServer]:
    """Every enabled server. Raises ConfigMistake naming the file of a bad manifest."""
    found: dict[str, BuiltinServer] = {}
    for folder in folders:
        for path in sorted(folder.path.glob("*/manifest.toml")):
            manifest = _read_manifest(path.read_bytes(), str(path))
            if manifest.name in found:
                raise ConfigMistake(f"Two servers are called {manifest.name}; the second is {path}.")
            if not is_enabled(manifest.name, environment):
                _log.info("%s is disabled by %s", manifest.name, variable_name(manifest.name, "ENABLED"))
                continue
            found[manifest.name] = BuiltinServer(
                profile=ServerProfile(
                    kind="builtin",
                    timeout_seconds=resolve_timeout(manifest.name, manifest.timeout, environment, default_timeout),
                    **{name: value for name, value in manifest if name not in _NOT_IN_PROFILE},
                ),
                module=f"{folder.package}.{path.parent.name}.__main__",
                variables=manifest.env,
            )
    return list(found.values())


def find_disabled(folders: Iterable[ManifestFolder], environment: Mapping[str, str]) -> list[str]:
    """Names of the servers that a setting disables."""
    paths = [path for folder in folders for path in sorted(folder.path.glob("*/manifest.toml"))]
    names = [_read_manifest(path.read_bytes(), str(path)).name for path in paths]
    return [name for name in names if not is_enabled(name, environment)]


@lru_cache(maxsize=64)
def _read_manifest(blob: bytes, path: str) -> ServerManifest:
    try:
        return ServerManifest.model_validate(tomllib.loads(blob.decode()))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigMistake(f"{path} is not valid TOML: {error}.") from error
    except ValidationError as error:
        field, reason = first_problem(error)
        raise ConfigMistake(f"{path}: {field}: {reason}.", field=field) from error


def variable_name(server: str, what: str) -> str:
    """The environment variable of a server's own setting: FILER_MCP_ENABLED."""
    return f"{re.sub(r'[^A-Za-z0-9]', '_', server).upper()}_MCP_{what}"


def is_enabled(server: str, environment: Mapping[str, str]) -> bool:
    return environment.get(variable_name(server, "ENABLED"), "true").strip().lower() not in ("false", "0", "no", "off")


def resolve_timeout(server: str, configured: float | None, environment: Mapping[str, str], default: float) -> float:
    """Seconds a call may take: NAME_MCP_TIMEOUT, else the server's own limit, else the default."""
    text = environment.get(variable_name(server, "TIMEOUT"), "").strip()
    try:
        value = float(text) if text else configured
    except ValueError:
        value = -1.0
    if value is None:
        return default
    if not 0 < value < float("inf"):
        raise ConfigMistake(f"{variable_name(server, 'TIMEOUT')} must be a number of seconds above 0, not {text!r}.")
    return to_seconds(value)


def to_seconds(value: float) -> float:
    """Convert from milliseconds, which other programs use; nobody means a call of seventeen minutes."""
    return value / 1000 if value >= _MILLISECONDS_FROM else value
