"""The state of each server, and the notices the toolbox sends to people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from annabelle.core.models import CamelModel
from annabelle.core.trust import ScanDirections

HoldState = Literal["waiting", "quarantined", "rejected"]
"""Why an external server is held back: not accepted yet, changed since it was accepted, or rejected."""

ServerState = Literal["starting", "ready", "restarting", "down", "disabled", "stopped"] | HoldState


class ServerStatus(CamelModel):
    """The current state of one server. `restarts` counts since the hub started."""

    name: str
    label: str
    group: str = ""
    kind: Literal["builtin", "external", "http"]
    role: Literal["guardian", "channel"] | None = None
    state: ServerState
    available: bool
    sensitive: bool = False
    scan: ScanDirections = ScanDirections()
    tools: int = 0
    pid: int | None = None
    restarts: int = 0
    missed_pings: int = 0
    garbage_lines: int = 0
    protocol: str | None = None
    timeout_seconds: float
    started_at: datetime | None = None
    last_error: str | None = None
    missing: str | None = None
    """What a running server lacks, and the command that provides it."""


NoticeKind = Literal[
    "startup_diff", "servers_changed", "external_config", "flapping", "server_disabled", "server_held", "tool_hidden"
]


@dataclass(frozen=True, slots=True)
class ToolboxNotice:
    """One sentence for a person, and the server it is about, if any."""

    kind: NoticeKind
    text: str
    server: str | None = None


NoticeListener = Callable[[ToolboxNotice], None]
ChangeListener = Callable[[str], None]
"""Called with the new version of the tool list when it changes."""
