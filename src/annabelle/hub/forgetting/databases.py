"""Forgets a text in workflow databases and in the table snapshots that migrations made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from annabelle.core.errors import StorageTrouble
from annabelle.core.home import Home
from annabelle.core.secrets.forget_mask import ForgetMatcher
from annabelle.durable import text_removal
from annabelle.durable.engine import Durable
from annabelle.store.database import FileLock, make_engine, sqlite_url
from annabelle.store.text_removal import TextRemoval

SERVER = "The database server"


@contextmanager
def open_database(url: str, name: str, *, read_only: bool = False) -> Generator[Engine]:
    """An engine with one connection, disposed afterwards. `name` is the database's name in error messages."""
    engine = make_engine(url, pool_size=1, read_only=read_only)
    try:
        with explain_search_failure(name):
            yield engine
    finally:
        engine.dispose()


@contextmanager
def explain_search_failure(name: str) -> Generator[None]:
    """Hides the driver's message in errors, because it may contain the text."""
    try:
        yield
    except DBAPIError as error:
        raise StorageTrouble(
            f"{name} could not be searched: {type(error.orig).__name__}.",
            hint="See whether the database is damaged, locked by another program or without space, and try again.",
        ) from error


FLOWS = "flows"
_TURNS_PREFIX = "turns_"


class WorkflowDatabases:
    """`url` is the shared PostgreSQL. Without it, each engine has its own file."""

    def __init__(self, home: Home, durable: Durable, url: str | None) -> None:
        self._home, self._durable, self._url = home, durable, url

    async def sweep(self, sweep: TextRemoval) -> int:
        """Count the rows of all engines that hold the text. With `apply`, also mask them and vacuum."""

        def sweep_engine(engine: Engine, schema: str) -> int:
            count = text_removal.remove_text(engine, schema, sweep)
            if sweep.apply:
                text_removal.vacuum_tables(engine, schema)
            return count

        with explain_search_failure(self._home.flows_file.name if self._url is None else SERVER):
            flows = await self._durable.with_database(lambda engine: sweep_engine(engine, FLOWS))
        return flows + await asyncio.to_thread(self._sweep_agents, sweep_engine, not sweep.apply)

    def suspended(self) -> AbstractAsyncContextManager[None]:
        return self._durable.suspended()

    def _sweep_agents(self, work: Callable[[Engine, str], int], reading: bool) -> int:
        if self._url is not None:
            with open_database(self._url, SERVER) as engine:
                names = text_removal.list_schemas(engine, lambda name: name.startswith(_TURNS_PREFIX))
                return sum(work(engine, schema) for schema in names)
        return sum(self._sweep_agent_file(path, work, reading) for path in sorted(self._home.agents.glob("*/turns.db")))

    @staticmethod
    def _sweep_agent_file(path: Path, work: Callable[[Engine, str], int], reading: bool) -> int:
        lock = None if reading else FileLock(path)
        if lock is not None:
            lock.acquire()
        try:
            with open_database(sqlite_url(path), f"{path.parent.name}/{path.name}", read_only=reading) as engine:
                return work(engine, "")
        finally:
            if lock is not None:
                lock.release()


_PREFIXES = ("backup_", "memory_backup_")
_BATCH = 500


class DatabaseSnapshots:
    """Snapshots on a PostgreSQL server. With SQLite, backups are files instead."""

    def __init__(self, url: str | None) -> None:
        self._url = url

    async def find_holding(self, matcher: ForgetMatcher) -> list[str]:
        return [] if self._url is None else await asyncio.to_thread(self._scan, self._url, matcher, False)

    async def drop(self, matcher: ForgetMatcher) -> int:
        return 0 if self._url is None else len(await asyncio.to_thread(self._scan, self._url, matcher, True))

    @staticmethod
    def _scan(url: str, matcher: ForgetMatcher, drop: bool) -> list[str]:
        with open_database(url, SERVER) as engine, engine.begin() as connection:
            names = [name for name in sa.inspect(connection).get_schema_names() if name.startswith(_PREFIXES)]
            found = [name for name in sorted(names) if _holds(connection, name, matcher)]
            for name in found if drop else []:
                connection.execute(sa.text(f'DROP SCHEMA "{name}" CASCADE'))
            return found


def _holds(connection: Connection, schema: str, matcher: ForgetMatcher) -> bool:
    for table in sa.inspect(connection).get_table_names(schema=schema):
        query = sa.text(f'SELECT * FROM "{schema}"."{table}"')  # noqa: S608  names of ours
        # Closed at the first match, because a table that is being read cannot be dropped.
        with connection.execute(query, execution_options={"yield_per": _BATCH}) as rows:
            if any(isinstance(cell, str) and matcher.found_in(cell) for row in rows for cell in row):
                return True
    return False
