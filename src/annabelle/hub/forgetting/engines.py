"""The durable engines of a home: the hub's own, and one of each agent, whose thinker must not run meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from sqlalchemy import Engine

from annabelle.core.home import Home
from annabelle.durable import forgetting
from annabelle.durable.durable import Durable
from annabelle.hub.forgetting.opened import SERVER, opened, searching
from annabelle.store.database import FileLock, sqlite_url
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

        with searching(self._home.flows_file.name if self._url is None else SERVER):
            flows = await self._durable.maintain(lambda engine: work(engine, FLOWS))
        return flows + await asyncio.to_thread(self._turns, work, not sweep.apply)

    def suspended(self) -> AbstractAsyncContextManager[None]:
        """While inside, no flow of the hub runs."""
        return self._durable.suspended()

    def _turns(self, work: Callable[[Engine, str], int], reading: bool) -> int:
        if self._url is not None:
            with opened(self._url, SERVER) as engine:
                names = forgetting.schemas(engine, lambda name: name.startswith(_TURNS))
                return sum(work(engine, schema) for schema in names)
        return sum(self._file(path, work, reading) for path in sorted(self._home.agents.glob("*/turns.db")))

    @staticmethod
    def _file(path: Path, work: Callable[[Engine, str], int], reading: bool) -> int:
        lock = None if reading else FileLock(path)
        if lock is not None:
            lock.acquire()
        try:
            with opened(sqlite_url(path), f"{path.parent.name}/{path.name}", read_only=reading) as engine:
                return work(engine, "")
        finally:
            if lock is not None:
                lock.release()
