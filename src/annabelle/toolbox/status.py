"""How a server is doing, as /status and the terminal show it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from annabelle.core.scans import Scan

HoldState = Literal["waiting", "quarantined", "rejected"]
"""How an external server is held back: nobody said yes to it, it is not what was accepted, somebody said no."""

ServerState = Literal["starting", "ready", "restarting", "down", "disabled", "stopped"] | HoldState


class ServerStatus(BaseModel):
    """One server at this moment. `restarts` counts since the hub started."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    name: str
    label: str
    group: str = ""
    kind: Literal["builtin", "external", "http"]
    role: Literal["guardian", "channel"] | None = None
    state: ServerState
    available: bool
    sensitive: bool = False
    scan: Scan = Scan()
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
    """What a running server lacks to do its work, and the command that mends it."""
