"""Keeps a second hub away from a PostgreSQL database. SQLite files have their own lock."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from annabelle.core.errors import AlreadyRunning
from annabelle.store.engine import DatabaseLocation, describe_error, make_engine, parse_url

HUB_LOCK_KEY: Final = 0x414E4E4148554221  # any number, the same in every hub
_WAIT_SECONDS: Final = 5.0
"""PostgreSQL may notice a killed hub only after its successor starts."""
_RETRY_SECONDS: Final = 0.2


class HubLock:
    """An advisory lock on its own connection, so that the server releases it when this process dies."""

    def __init__(self, engine: Engine, connection: Connection) -> None:
        self._engine, self._connection = engine, connection

    @classmethod
    async def acquire(cls, url: str, wait_seconds: float = _WAIT_SECONDS) -> HubLock | None:
        """Locks the database for this process; AlreadyRunning if another hub has it. None for a SQLite file."""
        if parse_url(url).drivername == "sqlite":
            return None
        return await asyncio.to_thread(cls._acquire, url, wait_seconds)

    @classmethod
    def _acquire(cls, url: str, wait_seconds: float) -> HubLock:
        engine = make_engine(url, pool_size=1)
        try:
            connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            deadline = time.monotonic() + wait_seconds
            while not connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": HUB_LOCK_KEY}):
                if time.monotonic() >= deadline:
                    raise AlreadyRunning(
                        "Another hub already works on the database that DATABASE_URL names.",
                        hint="Stop that hub, or give this one its own database: two hubs on one are not supported.",
                    )
                time.sleep(_RETRY_SECONDS)
        except BaseException as error:
            engine.dispose()
            if isinstance(error, DBAPIError) and (known := describe_error(error, DatabaseLocation(parse_url(url)))):
                raise known from error
            raise
        return cls(engine, connection)

    async def release(self) -> None:
        await asyncio.to_thread(self._release)

    def _release(self) -> None:
        try:
            self._connection.invalidate()  # closes it, so the server drops the lock
        except DBAPIError:
            pass  # the server is gone, and so is the lock
        finally:
            self._engine.dispose()
