"""Background work of the open memory: backups of changes, and vectors for rows that lack one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection, exists, select

from annabelle.core.errors import AnnabelleError
from annabelle.core.messages import now
from annabelle.embeddings import EmbeddingsUnavailable
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.vector_backfill import VectorBackfill
from annabelle.store import backup
from annabelle.store.backup import backup_time
from annabelle.store.database import Database
from annabelle.store.engine import list_backups
from annabelle.store.memory.migrations import NEWEST
from annabelle.store.memory.tables import contacts, conversations, facts, profiles, projects

_log = logging.getLogger(__name__)

EVERY_SECONDS = 300.0
BATCH = 100


class MemoryUpkeep:
    """Runs while the memory is open. Its failures never affect a call."""

    def __init__(self, config: MemoryConfig, database: Database, reembedding: VectorBackfill) -> None:
        self._config, self._database, self._reembedding = config, database, reembedding
        self._copying = asyncio.Lock()
        self._copied_at: float | None = None
        self._woken = asyncio.Event()
        self._done = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._last_warning: str | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="memory-upkeep")

    def run_now(self) -> None:
        """Run now instead of in some minutes."""
        self._done.clear()
        self._woken.set()

    async def wait_until_done(self) -> None:
        """Return when a full pass is done since the opening, or since the last `run_now`."""
        await self._done.wait()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        while True:
            await self._try(self.back_up_if_due)
            await self._try(self._embed_missing)
            if not self._woken.is_set():  # not woken meanwhile
                self._done.set()
            # Not wait_for: on Python 3.11 it loses a cancellation that comes right after the wake.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(EVERY_SECONDS):
                    await self._woken.wait()
            self._woken.clear()

    async def _try(self, work: Callable[[], Awaitable[object]]) -> None:
        try:
            await work()
        except EmbeddingsUnavailable as error:
            _log.debug("vectors are made later: %s", error.message)
        except AnnabelleError as error:
            if error.message != self._last_warning:  # once, not every few minutes
                self._last_warning = error.message
                _log.warning("%s %s", error.message, error.hint or "")
        except Exception:  # noqa: BLE001  the edge of a task that nobody waits for
            _log.exception("upkeep failed")

    async def _embed_missing(self) -> None:
        total = 0
        while done := await self._reembedding.embed_batch(BATCH):
            total += done
            await asyncio.sleep(0)  # calls come first
        if total:
            _log.info("%d rows got a new vector", total)

    async def back_up_if_due(self) -> Path | None:
        """Copy the file if it changed and the last copy is old enough; where the copy is."""
        config = self._config
        if config.database_url is not None or config.backup_hours <= 0:
            return None
        async with self._copying:
            if not await self._database.read(has_rows):
                return None
            age = None if self._copied_at is None else (time.monotonic() - self._copied_at) / 3600
            made = await asyncio.to_thread(back_up_if_due, config, now(), age)
            if made is not None:
                self._copied_at = time.monotonic()
            return made


def has_rows(connection: Connection) -> bool:
    """Whether there is anything to back up. A copy of an empty memory would only delay the first real one."""
    tables = (facts, conversations, profiles, contacts, projects)
    return any(connection.execute(select(exists().select_from(table))).scalar() for table in tables)


def back_up_if_due(config: MemoryConfig, at: datetime, age_hours: float | None = None) -> Path | None:
    """The copy that was made of the file, if one was due at this moment; `age_hours` of what this process copied."""
    file, folder = config.file, config.backups
    found = list_backups(file, folder)
    last = backup_time(found[-1]) if found else None
    if last is not None and last > at:
        # The clock was set back. What this process knows decides, and the copy is dated behind the last one: the
        # newest by its name is the one that is restored, and the one that is kept.
        due, at = age_hours is None or age_hours >= config.backup_hours, last + timedelta(microseconds=1)
    else:
        due = last is None or (at - last >= timedelta(hours=config.backup_hours) and _changed_since(file, last))
    return backup.copy_file(file, folder, NEWEST, at) if due else None


def _changed_since(file: Path, last: datetime) -> bool:
    log = file.with_name(f"{file.name}-wal")
    changed = [file.stat().st_mtime]
    if log.exists() and log.stat().st_size:
        changed.append(log.stat().st_mtime)
    return max(changed) > last.timestamp()
