"""A person's standing yes, for tests of other things than questions: what they call is not asked about."""

from __future__ import annotations

import asyncio
from pathlib import Path

from annabelle.core.messages import OWNER
from annabelle.core.tools import JsonObject
from annabelle.store import rules
from annabelle.store.database import Database, sqlite_url

ANYTHING = ["*"]


def let_pass(home: Path, database_url: str | None, **arguments_by_tool: tuple[str, ...]) -> None:
    """Allow these tools, whatever the arguments that are named for them hold. The hub must not run."""
    asyncio.run(_let_pass(database_url or sqlite_url(home / "data" / "annabelle.db"), arguments_by_tool))


async def _let_pass(url: str, arguments_by_tool: dict[str, tuple[str, ...]]) -> None:
    database = await Database.open(url)
    try:
        await allow(database, **arguments_by_tool)
    finally:
        await database.close()


async def allow(database: Database, **arguments_by_tool: tuple[str, ...]) -> None:
    """The same for a hub inside the test's process."""
    for tool, arguments in arguments_by_tool.items():
        match: JsonObject = {"tools": [tool], "arguments": dict.fromkeys(arguments, ANYTHING)}
        await database.write(
            lambda conn, match=match: rules.add_allowance(
                conn, user_id=OWNER, agent_id=None, words="These tests are about something else.", match=match
            )
        )
