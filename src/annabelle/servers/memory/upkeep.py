"""What the memory does unasked while it is open: backups of what changed, and vectors for rows that lack one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path

from annabelle.core.errors import AnnabelleError
from annabelle.core.messages import now
from annabelle.embeddings import EmbeddingsUnavailable
from annabelle.servers.memory.backups import made_at
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.reembedding import Reembedding
from annabelle.store import backup
from annabelle.store.memory.migrations import NEWEST
from annabelle.store.trouble import backups_of

_log = logging.getLogger(__name__)

EVERY_SECONDS = 300.0
BATCH = 100


class Upkeep:
    """Runs from the opening of a memory to its closing. Nothing it fails at stops a call."""

    def __init__(self, config: MemoryConfig, reembedding: Reembedding, every_seconds: float = EVERY_SECONDS) -> None:
        self._config, self._reembedding, self._every = config, reembedding, every_seconds
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._said: str | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="memory-upkeep")

    def wake(self) -> None:
        """Look now instead of in some minutes."""
        self._woken.set()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        while True:
            await self._tried(self.back_up_if_due)
            await self._tried(self._embed_what_is_missing)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), self._every)
            self._woken.clear()

    async def _tried(self, work: Callable[[], Awaitable[object]]) -> None:
        try:
            await work()
        except EmbeddingsUnavailable as error:
            _log.debug("vectors are made later: %s", error.message)
        except AnnabelleError as error:
            if error.message != self._said:  # once, not every few minutes
                self._said = error.message
                _log.warning("%s %s", error.message, error.hint or "")
        except Exception:  # noqa: BLE001  the edge of a task that nobody waits for
            _log.exception("upkeep failed")

    async def _embed_what_is_missing(self) -> None:
        total = 0
        while done := await self._reembedding.batch(BATCH):
            total += done
            await asyncio.sleep(0)  # calls come first
        if total:
            _log.info("%d rows got a new vector", total)

    async def back_up_if_due(self) -> Path | None:
        """Copy the file if it changed and the last copy is old enough; where the copy is."""
        config = self._config
        if config.database_url is not None or config.backup_hours <= 0:
            return None
        return await asyncio.to_thread(_back_up_if_due, config.file, config.backups, config.backup_hours)


def _back_up_if_due(file: Path, folder: Path, hours: float) -> Path | None:
    at, found = now(), backups_of(file, folder)
    last = made_at(found[-1]) if found else None
    # A clock that was set back makes the last copy one of the future: then it is due, not put off.
    young = last is not None and timedelta(0) <= at - last < timedelta(hours=hours)
    if young or not _changed_since(file, last):
        return None
    return backup.copy_file(file, folder, NEWEST, at)


def _changed_since(file: Path, last: datetime | None) -> bool:
    if last is None:
        return True
    log = file.with_name(f"{file.name}-wal")
    changed = [file.stat().st_mtime]
    if log.exists() and log.stat().st_size:
        changed.append(log.stat().st_mtime)
    return max(changed) > last.timestamp()
