"""Tools that tell what a page said on its console and asked of the network."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from annabelle.servers.kit import tool
from annabelle.servers.web.house import House
from annabelle.servers.web.keeping import FileName, keep
from annabelle.servers.web.results import Content
from annabelle.servers.web.session import Session
from annabelle.servers.web.tab import Tab
from annabelle.servers.web.traffic import LEVELS, STATIC, Level

_SHOWN_CHARS = 10_000


class Listening:
    """Both work while a dialog is open: they ask the page nothing."""

    def __init__(self, house: House) -> None:
        self._house = house

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def browser_console_messages(
        self,
        level: Annotated[
            Level, Field(description="The least important level to show; more severe ones are too")
        ] = "info",
        filename: FileName = None,
    ) -> Content:
        """List what the page wrote to its console, errors of its scripts included; the last 300."""
        async with self._house.use() as session:
            tab = await session.tab(dialog=True)
            wanted = LEVELS[: LEVELS.index(level) + 1]
            lines = [
                f"[{said.level}] {said.text}" + (f" ({said.where})" if said.where else "")
                for said in tab.traffic.console
                if said.level in wanted
            ]
            return await self._list(session, tab, lines, filename, "console.txt")

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def browser_network_requests(
        self,
        includeStatic: Annotated[
            bool, Field(description="Also pictures, fonts, styles and scripts that came properly")
        ] = False,
        filename: FileName = None,
    ) -> Content:
        """List what the page asked of the network: method, address, kind and status; the last 300."""
        async with self._house.use() as session:
            tab = await session.tab(dialog=True)
            lines = [
                f"{one.method} {one.url} [{one.kind}] {one.outcome}"
                for one in tab.traffic.requests
                if includeStatic or one.kind not in STATIC or not one.outcome.startswith("2")
            ]
            return await self._list(session, tab, lines, filename, "requests.txt")

    async def _list(self, session: Session, tab: Tab, lines: list[str], filename: str | None, name: str) -> Content:
        text = "\n".join(lines) or "Nothing."
        page = Content(url=session.url(tab), title=await tab.title(), total_chars=len(text))
        if filename:
            kept = await keep(self._house.workspace, filename, "Documents", ".txt", text.encode())
            return page.model_copy(update={"content": "(saved, not shown)", "rest": kept.path})
        shown = await self._house.overflow.show(text, _SHOWN_CHARS, name)
        return page.model_copy(update={"content": shown.text, "rest": shown.rest})
