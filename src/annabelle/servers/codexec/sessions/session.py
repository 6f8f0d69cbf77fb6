"""A session as the tools know it: an interpreter with a name, an owner, a place to work and packages of its own."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from annabelle.core.messages import now
from annabelle.servers.codexec.bench import Bench
from annabelle.servers.codexec.languages import SessionLanguage
from annabelle.servers.codexec.sessions.interpreter import Interpreter


@dataclass(slots=True, eq=False)
class Session:
    """One session. `lock` is held while code runs in it."""

    id: str
    owner: str
    language: SessionLanguage
    name: str | None
    bench: Bench
    interpreter: Interpreter
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    started: datetime = field(default_factory=now)
    used_at: float = field(default_factory=time.monotonic)
    runs: int = 0

    @property
    def packages(self) -> Path:
        return self.bench.run.packages

    @property
    def idle_seconds(self) -> float:
        return 0.0 if self.lock.locked() else time.monotonic() - self.used_at

    def touch(self) -> None:
        self.used_at = time.monotonic()
