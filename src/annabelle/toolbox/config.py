"""Configuration of the toolbox, and the environment variables each server gets to see."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from annabelle.core.failpoints import VARIABLE as FAILPOINTS
from annabelle.core.home import HOME_VARIABLE, Home
from annabelle.core.settings import Settings

PRELOADED = (
    "annabelle.servers.kit.server_process",
    "annabelle.servers.kit.overflow",  # imports the workspace files too
    "annabelle.servers.kit.pagination",
    "annabelle.servers.kit.host_access",
    "annabelle.core.connections",
    "html.parser",
    "annabelle.toolbox.process.warmup",
)
"""What the fork server imports before it forks: what most servers use. The warm-up, last, runs the shared code once,
so that no child has to."""


@dataclass(frozen=True, slots=True)
class ManifestFolder:
    """A folder whose sub-folders are servers, and the package they are imported from."""

    path: Path
    package: str


def builtin_servers() -> ManifestFolder:
    """The servers that come with Annabelle. They are found by folder, never imported by this process."""
    return ManifestFolder(Path(__file__).resolve().parent.parent / "servers", "annabelle.servers")


@dataclass(frozen=True, slots=True)
class ToolboxLimits:
    """How long things may take, and how often they are tried."""

    call_seconds: float = 30
    start_seconds: float = 30
    ping_every_seconds: float = 60
    ping_seconds: float = 5
    pings_missed: int = 3
    restart_base_seconds: float = 0.5
    restart_cap_seconds: float = 60
    max_restarts: int = 8
    restart_window_seconds: float = 600
    wait_for_restart_seconds: float = 8
    stop_grace_seconds: float = 3
    reload_quiet_ms: int = 500


@dataclass(frozen=True, slots=True)
class ToolboxConfig:
    """Everything that decides which servers run, and how."""

    home: Home
    environment: Mapping[str, str] = field(repr=False)
    external_file: Path
    manifest_folders: tuple[ManifestFolder, ...]
    limits: ToolboxLimits = field(default_factory=ToolboxLimits)
    external_need_approval: bool = True
    use_forkserver: bool = True
    preload: tuple[str, ...] = PRELOADED
    python_path: tuple[str, ...] = ()
    result_max_bytes: int = 1_000_000
    message_max_bytes: int = 8_000_000
    log_level: str = "info"

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        home: Home,
        environment: Mapping[str, str],
        manifest_folders: tuple[ManifestFolder, ...] | None = None,
    ) -> ToolboxConfig:
        """What the hub runs with. `environment` is the hub's own, with the values of settings.env added to it."""
        agents_file = settings.agents_config_path or home.agents_file
        extra = settings.extra_servers_path.expanduser().absolute() if settings.extra_servers_path else None
        more = () if extra is None else (ManifestFolder(extra, extra.name),)
        return cls(
            home=home,
            environment=dict(environment),
            external_file=settings.external_mcps_path or agents_file.parent / "external-mcps.json",
            manifest_folders=(builtin_servers(), *more) if manifest_folders is None else manifest_folders,
            python_path=() if extra is None else (str(extra.parent),),
            limits=ToolboxLimits(
                call_seconds=settings.tool_timeout_seconds,
                start_seconds=settings.server_start_timeout_seconds,
                ping_every_seconds=settings.server_ping_seconds,
                ping_seconds=settings.server_ping_timeout_seconds,
                restart_base_seconds=settings.server_restart_base_seconds,
                max_restarts=settings.server_max_restarts,
            ),
            external_need_approval=settings.external_servers_need_yes,
            use_forkserver=settings.nursery_enabled,
            result_max_bytes=settings.tool_result_max_bytes,
            message_max_bytes=max(8_000_000, 4 * settings.tool_result_max_bytes),
            log_level=settings.log_level,
        )


_BUILTIN = ("PATH", "HOME", "LANG", "TZ")
_EXTERNAL = ("PATH", "HOME", "LANG", "USER", "TERM")
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class UnresolvedVariable(Exception):
    """A `${NAME}` whose variable is not set."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the variable {name} is not set")
        self.name = name


def builtin_environment(names: Iterable[str], hub: Mapping[str, str], home: Home, log_level: str) -> dict[str, str]:
    """What every built-in server gets, and what its manifest asks for."""
    chosen = {name: hub[name] for name in (*_BUILTIN, FAILPOINTS, *names) if name in hub}
    return chosen | {HOME_VARIABLE: str(home.root), "LOG_LEVEL": log_level}


def external_environment(own: Mapping[str, str], hub: Mapping[str, str]) -> dict[str, str]:
    """What a program needs to run at all, and what the user wrote into its entry."""
    return {name: hub[name] for name in _EXTERNAL if name in hub} | dict(own)


def resolve_variables(text: str, hub: Mapping[str, str]) -> str:
    """Put the hub's variables into `${NAME}`; raises UnresolvedVariable for one that is not set."""

    def look_up(match: re.Match[str]) -> str:
        if match.group(1) not in hub:
            raise UnresolvedVariable(match.group(1))
        return hub[match.group(1)]

    return _PLACEHOLDER.sub(look_up, text)
