"""Copies of tables inside a PostgreSQL database, which migrations made: those that hold a text are dropped."""

from __future__ import annotations

import asyncio

import sqlalchemy as sa
from sqlalchemy import Connection

from annabelle.core.needle import Needle
from annabelle.hub.forgetting.opened import SERVER, opened

_PREFIXES = ("backup_", "memory_backup_")
_BATCH = 500


class Snapshots:
    """Without a database server there are none: backups are files then."""

    def __init__(self, url: str | None) -> None:
        self._url = url

    async def holding(self, needle: Needle) -> list[str]:
        """Their names."""
        return [] if self._url is None else await asyncio.to_thread(self._look, self._url, needle, False)

    async def drop(self, needle: Needle) -> int:
        """Drop those that hold the text; how many."""
        return 0 if self._url is None else len(await asyncio.to_thread(self._look, self._url, needle, True))

    @staticmethod
    def _look(url: str, needle: Needle, drop: bool) -> list[str]:
        with opened(url, SERVER) as engine, engine.begin() as connection:
            names = [name for name in sa.inspect(connection).get_schema_names() if name.startswith(_PREFIXES)]
            found = [name for name in sorted(names) if _holds(connection, name, needle)]
            for name in found if drop else []:
                connection.execute(sa.text(f'DROP SCHEMA "{name}" CASCADE'))
            return found


def _holds(connection: Connection, schema: str, needle: Needle) -> bool:
    for table in sa.inspect(connection).get_table_names(schema=schema):
        query = sa.text(f'SELECT * FROM "{schema}"."{table}"')  # noqa: S608  names of ours
        # Closed at the first hit: a table that is still being read can not be dropped.
        with connection.execute(query, execution_options={"yield_per": _BATCH}) as rows:
            if any(isinstance(cell, str) and needle.within(cell) for row in rows for cell in row):
                return True
    return False
