"""A check, what it reads and what it finds.

Checks read through a `DiagnosisContext`, so that the same ones run inside the hub and without one. What they say holds
no text of others: it is told in chats, where a model may read it as trusted.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, Protocol, TypeVar

from sqlalchemy import Connection

from annabelle.core.errors import Unavailable
from annabelle.core.home import Home
from annabelle.core.settings import Settings
from annabelle.hub.agents.config import AgentsConfig
from annabelle.hub.agents.halts import Halts
from annabelle.hub.agents.manager import AgentStatus
from annabelle.toolbox.call_hooks import FailMode
from annabelle.toolbox.status import ServerStatus

T = TypeVar("T")
Severity = Literal["critical", "warning", "info", "ok"]
SEVERITIES: Final[tuple[Severity, ...]] = ("critical", "warning", "info", "ok")
Category = Literal["services", "embedding", "logs", "schedule", "tools", "data", "security", "installation"]
MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """What one check says. `subject` is what it is about where one check may find several things."""

    check: str
    category: Category
    severity: Severity
    text: str
    action: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """What a check found; the report adds which check it was."""

    severity: Severity
    text: str
    action: str
    subject: str = ""


class DatabaseReader(Protocol):
    async def read(self, query: Callable[[Connection], T]) -> T: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveHub:
    """What only a running hub knows."""

    servers: Sequence[ServerStatus]
    agents: Sequence[AgentStatus]
    fail_mode: FailMode
    guardian_down: bool
    """Whether it is switched on and cannot scan."""
    probe_engine: Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisContext:
    """What checks may read. Nothing here writes."""

    home: Home
    settings: Settings
    agents: AgentsConfig
    halts: Halts
    at: datetime
    database: DatabaseReader | None
    """None if there is none yet."""
    live: LiveHub | None = None

    @property
    def running(self) -> LiveHub:
        if self.live is None:
            raise Unavailable("Annabelle does not run.")
        return self.live

    async def query(self, query: Callable[[Connection], T], empty: T) -> T:
        """Read from the database; `empty` where there is none yet."""
        return empty if self.database is None else await self.database.read(query)


@dataclass(frozen=True, slots=True)
class Check:
    id: str
    category: Category
    severities: tuple[Severity, ...]
    found_when: str
    """For the documentation: the condition with its threshold."""
    run: Callable[[DiagnosisContext], Awaitable[Sequence[Problem]]]
    needs_hub: bool = False

    def finding(self, severity: Severity, text: str, action: str = "", subject: str = "") -> CheckFinding:
        return CheckFinding(self.id, self.category, severity, text, action, subject)


_IN_TERMINAL: Final = {
    "/resume": "annabelle resume",
    "/status": "annabelle status",
    "/logs": "annabelle logs",
    "/cron": "annabelle skills",
    "/security": "annabelle audit show --kind scan",
}
_COMMAND: Final = re.compile(r"(?<!\S)(" + "|".join(_IN_TERMINAL) + r")\b")


def for_terminal(action: str) -> str:
    """An action with the commands of the terminal in place of those of a chat."""
    return _COMMAND.sub(lambda found: _IN_TERMINAL[found[1]], action)
