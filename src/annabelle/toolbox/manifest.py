"""The card each built-in server carries: `manifest.toml` in its folder (EXT-01)."""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from annabelle.core.errors import ConfigMistake
from annabelle.core.scans import Scan
from annabelle.toolbox.config import ManifestFolder
from annabelle.toolbox.profile import ServerProfile

_log = logging.getLogger(__name__)
_MILLISECONDS_FROM = 1000

ServerName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$")]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Manifest(BaseModel):
    """What a server says about itself. `env` are the names of the variables it gets, if they are set."""

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
    scan: Scan = Scan()
    provenance: bool = False
    takes_secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Builtin:
    """A built-in server that was found and is not disabled."""

    profile: ServerProfile
    module: str
    variables: tuple[str, ...]


def find_builtins(
    folders: Iterable[ManifestFolder], environment: Mapping[str, str], default_timeout: float
) -> list[Builtin]:
    """Every enabled server, by name. A manifest that can not be read is a mistake that names its file."""
    found: dict[str, Builtin] = {}
    for folder in folders:
        for path in sorted(folder.path.glob("*/manifest.toml")):
            manifest = _read(path.read_bytes(), str(path))
            if manifest.name in found:
                raise ConfigMistake(f"Two servers are called {manifest.name}; the second is {path}.")
            if not enabled(manifest.name, environment):
                _log.info("%s is disabled by %s", manifest.name, variable(manifest.name, "ENABLED"))
                continue
            found[manifest.name] = Builtin(
                profile=ServerProfile(
                    name=manifest.name,
                    label=manifest.label,
                    kind="builtin",
                    timeout_seconds=timeout_of(manifest.name, manifest.timeout, environment, default_timeout),
                    group=manifest.group,
                    keywords=manifest.keywords,
                    role=manifest.role,
                    sensitive=manifest.sensitive,
                    scan=manifest.scan,
                    provenance=manifest.provenance,
                    takes_secrets=manifest.takes_secrets,
                ),
                module=f"{folder.package}.{path.parent.name}.__main__",
                variables=manifest.env,
            )
    return list(found.values())


def find_disabled(folders: Iterable[ManifestFolder], environment: Mapping[str, str]) -> list[str]:
    """The names of the servers that a setting disables."""
    paths = [path for folder in folders for path in sorted(folder.path.glob("*/manifest.toml"))]
    names = [_read(path.read_bytes(), str(path)).name for path in paths]
    return [name for name in names if not enabled(name, environment)]


def _read(blob: bytes, path: str) -> Manifest:
    try:
        return Manifest.model_validate(tomllib.loads(blob.decode()))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigMistake(f"{path} is not valid TOML: {error}.") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigMistake(f"{path}: {field}: {first['msg']}.", field=field) from error


def variable(server: str, what: str) -> str:
    """The name of a server's own setting in the environment: FILER_MCP_ENABLED."""
    return f"{re.sub(r'[^A-Za-z0-9]', '_', server).upper()}_MCP_{what}"


def enabled(server: str, environment: Mapping[str, str]) -> bool:
    return environment.get(variable(server, "ENABLED"), "true").strip().lower() not in ("false", "0", "no", "off")


def timeout_of(server: str, configured: float | None, environment: Mapping[str, str], default: float) -> float:
    """Seconds a call may take: the environment's word, else the server's own, else the default."""
    text = environment.get(variable(server, "TIMEOUT"), "").strip()
    try:
        value = float(text) if text else configured
    except ValueError:
        value = -1.0
    if value is None:
        return default
    if not 0 < value < float("inf"):
        raise ConfigMistake(f"{variable(server, 'TIMEOUT')} must be a number of seconds above 0, not {text!r}.")
    return seconds(value)


def seconds(value: float) -> float:
    """Other programs write these timeouts in milliseconds; nobody means a call of seventeen minutes."""
    return value / 1000 if value >= _MILLISECONDS_FROM else value
