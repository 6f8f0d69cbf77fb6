"""The durable engines of a home: the hub's own, and one of each agent, whose thinker must not run meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from annabelle.core.errors import StorageTrouble
from annabelle.core.home import Home
from annabelle.durable import forgetting
from annabelle.durable.durable import Durable
from annabelle.store.database import FileLock, make_engine, sqlite_url
from annabelle.store.sweep import Sweep

FLOWS = "flows"
_TURNS = "turns_"


class Engines:
    """`url` is the shared PostgreSQL; without it each engine has a file of its own."""

    def __init__(self, home: Home, durable: Durable, url: str | None) -> None:
        self._home, self._durable, self._url = home, durable, url

    async def sweep(self, sweep: Sweep) -> int:
        """Rows of all engines that hold the text; with `apply`, none does any more, nor any free page."""

        def work(engine: Engine, schema: str) -> int:
            count = forgetting.forget(engine, schema, sweep)
            if sweep.apply:
                forgetting.tidy(engine, schema)
            return count

        flows = await self._durable.maintain(lambda engine: work(engine, FLOWS))
        return flows + await asyncio.to_thread(self._turns, work, not sweep.apply)

    def suspended(self) -> AbstractAsyncContextManager[None]:
        """While inside, no flow of the hub runs."""
        return self._durable.suspended()

    def _turns(self, work: Callable[[Engine, str], int], reading: bool) -> int:
        if self._url is not None:
            with _opened(self._url) as engine:
                names = forgetting.schemas(engine, lambda name: name.startswith(_TURNS))
                return sum(work(engine, schema) for schema in names)
        return sum(self._file(path, work, reading) for path in sorted(self._home.agents.glob("*/turns.db")))

    @staticmethod
    def _file(path: Path, work: Callable[[Engine, str], int], reading: bool) -> int:
        lock = None if reading else FileLock(path)
        if lock is not None:
            lock.acquire()
        try:
            with _opened(sqlite_url(path), read_only=reading) as engine:
                return work(engine, "")
        except DBAPIError as error:
            raise StorageTrouble(
                f"{path.parent.name}/{path.name} could not be searched: {type(error.orig).__name__}.",
                hint="See whether the file is damaged and the disk full.",
            ) from error
        finally:
            if lock is not None:
                lock.release()


@contextmanager
def _opened(url: str, *, read_only: bool = False) -> Generator[Engine]:
    engine = make_engine(url, pool_size=1, read_only=read_only)
    try:
        yield engine
    finally:
        engine.dispose()
