"""The shape of the fixture that uses the browser."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from annabelle.servers.kit import ToolServer
from annabelle.servers.web.browser_pool import BrowserPool
from annabelle.servers.web.browser_session import BrowserSession


@dataclass(frozen=True, slots=True)
class Web:
    """A browser server of this process, called without a protocol in between."""

    house: BrowserPool
    server: ToolServer
    workspace: Path

    async def __call__(self, name: str, **arguments: object) -> Any:
        return await self.server.tools[f"browser_{name}"].call(arguments)

    async def ref(self, what: str) -> str:
        """The ref of the first element whose line in a new snapshot has this in it."""
        tree = (await self("snapshot")).content
        for line in tree.splitlines():
            if what in line and (found := re.search(r"\[ref=(\w+)\]", line)):
                return found.group(1)
        raise AssertionError(f"no {what} in:\n{tree}")

    async def told(self, what: str, news: list[str]) -> str:
        """The sentence with this in it, in a result's news or in one of the next: some things take their time."""
        for _ in range(150):
            if found := [line for line in news if what in line]:
                return found[0]
            await asyncio.sleep(0.1)
            news = (await self("tabs", action="list")).news
        raise AssertionError(f"nothing was told of {what}")

    @asynccontextmanager
    async def hasty(self, **seconds: float) -> AsyncGenerator[BrowserSession]:
        """Less patience in the current tab, for what is meant to take too long."""
        async with self.house.use_session() as session:
            tab = await session.current_tab()
        before = tab.timeouts, session.timeouts
        session.timeouts = tab.timeouts = replace(session.timeouts, **seconds)
        try:
            yield session
        finally:
            tab.timeouts, session.timeouts = before

    async def fresh(self) -> None:
        """One empty tab, and nothing untold."""
        async with self.house.use_session() as session:
            old = list(session.tabs)
            await session.new_tab()
            for tab in old:
                await session.close_tab(tab)
            session.take_notices()
