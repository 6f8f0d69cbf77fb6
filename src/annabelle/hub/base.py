"""Shared parts of the hub's components: home, settings, storage and lifecycle."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, TypeVar

from annabelle.core.clock import Clock, SystemClock
from annabelle.core.errors import RetryByModel, StorageTrouble, Unavailable
from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.trace import TraceFile
from annabelle.durable.engine import Durable
from annabelle.hub.conversations.event_log import EventLog
from annabelle.hub.notices import Notices
from annabelle.store.database import Database

Phase = Literal["starting", "ready", "stopping"]
_READY_SECONDS: Final = 60.0
_DISK_SECONDS: Final = 1.0
_log = logging.getLogger(__name__)
_MOST_MEGABYTES: Final = 45
"""A bot may send files of 50 MB."""
T = TypeVar("T")


class HubLifecycle:
    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.started_at: datetime = now()
        self.starts_again = False
        self._began = time.monotonic()
        self._ready = asyncio.Event()
        self._phase: Phase = "starting"

    @property
    def phase(self) -> Phase:
        return self._phase

    @property
    def stopping(self) -> bool:
        return self._phase == "stopping"

    @property
    def uptime_seconds(self) -> float:
        return time.monotonic() - self._began

    def mark_ready(self) -> None:
        self._phase = "ready"
        self._ready.set()

    def mark_stopping(self) -> None:
        self._phase = "stopping"

    def restart(self) -> None:
        """Stop as for a signal, then start again in the same process with the settings of then."""
        self.starts_again = True
        os.kill(os.getpid(), signal.SIGTERM)

    async def wait_ready(self, timeout: float = _READY_SECONDS) -> None:
        """Wait until every server has listed its tools or failed. Returns anyway after `timeout`."""
        if not self._ready.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ready.wait(), timeout)


async def write_until_stored(what: str, write: Callable[[], Awaitable[T]]) -> T:
    """Try until it is written: the disk may be full, or the database server away. A restart begins here again."""
    while True:
        try:
            return await write()
        except (StorageTrouble, Unavailable) as trouble:
            _log.error("%s could not be written yet: %s", what, trouble.message)
            await asyncio.sleep(_DISK_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubBase:
    """What is known before anything is opened. `environment` includes settings.env."""

    home: Home
    settings: Settings
    environment: Mapping[str, str] = field(repr=False)
    redact: Redactor
    address: str
    notices: Notices = field(default_factory=Notices)
    lifecycle: HubLifecycle = field(default_factory=HubLifecycle)

    @property
    def workspace(self) -> Path:
        """The folder of the person's files."""
        return self.settings.workspace_path or self.home.workspace

    def find_file(self, named: str) -> Path:
        """A file of the workspace that goes with a message. Raises RetryByModel if it cannot be sent."""
        missing = RetryByModel(
            f"There is no file {named} in the workspace.", hint="Give its path within the workspace."
        )
        try:
            file = (self.workspace / named).resolve()
            if not file.is_relative_to(self.workspace.resolve()) or not file.is_file():
                raise missing
        except (OSError, ValueError) as error:  # no file can have this name
            raise missing from error
        if file.stat().st_size > _MOST_MEGABYTES * 1024**2:
            raise RetryByModel(f"{named} is larger than {_MOST_MEGABYTES} MB.", hint="Send a smaller file.")
        return file

    @property
    def database_url(self) -> str | None:
        """The shared PostgreSQL, None if each database is a file of the home."""
        url = self.settings.database_url
        return url.get_secret_value() if url is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HubStorage:
    """Where the hub writes: tables, workflows, events and traces."""

    database: Database
    durable: Durable
    events: EventLog
    traces: TraceFile
