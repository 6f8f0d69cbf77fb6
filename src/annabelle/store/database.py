"""The database of one process. Reads run concurrently; writes on SQLite run one at a time."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, TimeoutError as PoolTimeout

from annabelle.core.errors import StorageTrouble, Unavailable
from annabelle.store.engine import (
    DatabaseLocation,
    DialectName,
    checkpoint,
    describe_error,
    driver,
    is_transient,
    make_engine,
    parse_url,
    read_only_error,
    sqlite_url,
    vacuum,
)
from annabelle.store.file_lock import FileLock
from annabelle.store.schema_migration import HUB_PLAN, MigrationPlan, migrate_database

__all__ = ["Database", "FileLock", "make_engine", "sqlite_url"]

T = TypeVar("T")

_log = logging.getLogger(__name__)

READERS = 4
WRITERS_ON_POSTGRES = 8
ATTEMPTS = 8
CLOSE_TIMEOUT_SECONDS = 10


def _writers(place: DatabaseLocation) -> int:
    return 1 if place.file else WRITERS_ON_POSTGRES


class Database:
    """Opened once per process. `read` and `write` run a function with the connection of one transaction."""

    def __init__(self, writing: Engine, reading: Engine, place: DatabaseLocation, lock: FileLock | None) -> None:
        self.dialect: DialectName = "sqlite" if place.file else "postgresql"
        self._writing, self._reading, self._location, self._lock = writing, reading, place, lock
        self._writers = ThreadPoolExecutor(_writers(place), thread_name_prefix="store-write")
        self._closed = False
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="store-read")

    @classmethod
    async def open(
        cls, url: str, *, synchronous: str = "NORMAL", backups: Path | None = None, plan: MigrationPlan = HUB_PLAN
    ) -> Database:
        """Locks the database and migrates it. Raises StorageTrouble or AlreadyRunning."""
        return await asyncio.to_thread(cls._open, url, synchronous, backups, plan)

    @classmethod
    def _open(cls, url: str, synchronous: str, backups: Path | None, plan: MigrationPlan) -> Database:
        place = DatabaseLocation(parse_url(url), backups, plan.restore_command)
        lock = None
        if place.file:
            try:
                place.file.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StorageTrouble(f"{place.file.parent} can not be made: {error.strerror}.") from error
            lock = FileLock(place.file)
            lock.acquire()
            if place.file.exists() and not os.access(place.file, os.W_OK, effective_ids=True):
                # SQLite would still open it, and fail at the first write.
                lock.release()
                raise read_only_error(place)
        writing = make_engine(url, synchronous, pool_size=_writers(place))
        try:
            migrate_database(writing, place.file, backups, plan)
        except BaseException as error:
            writing.dispose()
            if lock:
                lock.release()
            if isinstance(error, DBAPIError | PoolTimeout) and (known := describe_error(error, place)):
                raise known from error
            raise
        return cls(writing, make_engine(url, synchronous, pool_size=READERS, read_only=True), place, lock)

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Runs a query on a consistent, read-only view."""
        self._require_open()
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._run, self._reading, query)

    async def write(self, change: Callable[[Connection], T]) -> T:
        """Runs a change in one transaction: everything is stored when this returns, nothing if it raises."""
        self._require_open()
        return await asyncio.get_running_loop().run_in_executor(self._writers, self._run, self._writing, change)

    def _require_open(self) -> None:
        if self._closed:
            raise Unavailable(
                f"The database {self._location.name} is closed for now.",
                hint="Annabelle is stopping, or the file is being replaced; try again.",
            )

    def _run(self, engine: Engine, work: Callable[[Connection], T]) -> T:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with engine.begin() as connection:
                    return work(connection)
            except DBAPIError as error:
                if is_transient(error) and attempt < ATTEMPTS:
                    continue
                if known := describe_error(error, self._location):
                    raise known from error
                raise
            except PoolTimeout as error:
                raise describe_error(error, self._location) or error from error
            except StopIteration as error:
                # A future cannot hold it, so whoever waits for this would wait for ever.
                raise RuntimeError("The work on the database found nothing where there is always something.") from error
        raise AssertionError("unreachable")

    async def vacuum(self, tables: Sequence[str] = ()) -> None:
        """Removes all traces of deleted rows: rewrites the file, or on PostgreSQL these tables."""
        self._require_open()

        def vacuum_or_explain() -> None:
            try:
                vacuum(self._writing, tables)
            except (DBAPIError, driver.Error) as error:
                raise StorageTrouble(
                    f"The database {self._location.name} could not be rewritten: {error}.",
                    hint="Free some disk space, and try again.",
                ) from error

        await asyncio.get_running_loop().run_in_executor(self._writers, vacuum_or_explain)

    async def problems(self) -> list[str]:
        """Lists what is damaged inside the database file (I-22)."""
        if self.dialect != "sqlite":
            return []

        def check(connection: Connection) -> list[str]:
            rows = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check(20)")]
            orphans = [
                f"a row of {row[0]} lost its parent" for row in connection.exec_driver_sql("PRAGMA foreign_key_check")
            ]
            return [row for row in rows if row != "ok"] + orphans

        try:
            return await self.read(check)
        except StorageTrouble as trouble:
            return [trouble.message]

    async def close(self) -> None:
        """Finishes running work, merges the WAL into the file, and closes. Safe to call twice."""
        self._closed = True
        try:
            await asyncio.wait_for(asyncio.to_thread(self._close), CLOSE_TIMEOUT_SECONDS)
        except TimeoutError:
            _log.warning("%s was still busy after %d s and was left open", self._location.name, CLOSE_TIMEOUT_SECONDS)

    def _close(self) -> None:
        self._readers.shutdown()
        self._writers.shutdown()
        self._reading.dispose()
        if self.dialect == "sqlite":
            checkpoint(self._writing)
        self._writing.dispose()
        if self._lock:
            self._lock.release()
