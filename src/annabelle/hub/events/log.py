"""Writes turn events down in batches: at once when idle, together under load; then tells the listeners."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sqlalchemy import Connection

from annabelle.core.errors import AnnabelleError
from annabelle.core.events import StoredEvent, TurnEvent
from annabelle.hub.events.fanout import Fanout
from annabelle.store import events as stored
from annabelle.store.database import Database

_log = logging.getLogger(__name__)
_BACKLOG = 5000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Written(Generic[T]):
    """What a transaction gave, and the events it wrote for one user."""

    result: T
    user_id: str
    events: Sequence[StoredEvent] = ()


@dataclass(slots=True)
class _Batch:
    """Events that wait for the next write, by thread, and whoever wants to know when they are stored."""

    events: dict[tuple[str, str], list[TurnEvent]] = field(default_factory=dict[tuple[str, str], list[TurnEvent]])
    count: int = 0
    written: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class EventLog:
    """The one writer of events in this process, so that the order of numbers is the order of telling."""

    def __init__(self, database: Database, fanout: Fanout) -> None:
        self._database, self._fanout = database, fanout
        self._lock = asyncio.Lock()
        self._batch: _Batch | None = None
        self._writing: asyncio.Task[None] | None = None

    def add(self, thread_id: str, user_id: str, event: TurnEvent) -> asyncio.Future[None]:
        """Write an event down soon. The future tells when it is stored, or that it could not be."""
        if self._batch is None:
            self._batch = _Batch()
            # Nobody may be waiting for it, and a failure is logged by the writer.
            self._batch.written.add_done_callback(lambda done: done.cancelled() or done.exception())
            if self._writing is None or self._writing.done():
                self._writing = asyncio.create_task(self._write())
        self._batch.events.setdefault((thread_id, user_id), []).append(event)
        self._batch.count += 1
        return self._batch.written

    @property
    def crowded(self) -> bool:
        """Whether writers should wait for the disk before they add more."""
        return self._batch is not None and self._batch.count > _BACKLOG

    async def _write(self) -> None:
        while self._batch is not None:
            batch, self._batch = self._batch, None
            try:
                async with self._lock:
                    told = await self._database.write(lambda conn, batch=batch: _append(conn, batch))
                    for user_id, events in told:
                        self._fanout.tell(user_id, events)
                batch.written.set_result(None)
            except AnnabelleError as error:
                _log.error("%d events could not be written: %s", batch.count, error.message)
                batch.written.set_exception(error)
            except Exception as error:  # noqa: BLE001  the writer goes on: what was added meanwhile waits for it
                _log.exception("%d events could not be written", batch.count)
                batch.written.set_exception(error)
            except BaseException:
                batch.written.cancel()  # whoever waits must not wait for ever
                raise

    async def transact(self, change: Callable[[Connection], Written[T]]) -> T:
        """Run a change that also writes events, in one transaction, and tell the events once it is committed."""
        async with self._lock:
            written = await self._database.write(change)
            self._fanout.tell(written.user_id, written.events)
        return written.result

    async def close(self, timeout: float = 5) -> None:
        """Wait for what is being written."""
        if self._writing is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._writing), timeout)


def _append(conn: Connection, batch: _Batch) -> list[tuple[str, list[StoredEvent]]]:
    return [(user_id, stored.append(conn, thread_id, events)) for (thread_id, user_id), events in batch.events.items()]
