"""Tools for the browser itself: its tabs, its size, its end."""

from __future__ import annotations

import contextlib
from typing import Annotated, Literal

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.kit import Result, tool
from annabelle.servers.web.finding import find_browser, require_driver
from annabelle.servers.web.house import House
from annabelle.servers.web.results import Done
from annabelle.servers.web.session import Session
from annabelle.servers.web.tab import DialogOpened


class TabLine(Result):
    index: int
    title: str
    url: str
    current: bool


class Tabs(Result):
    tabs: list[TabLine]
    news: list[str] = Field(default_factory=list)

    def text(self) -> str:
        lines = [f"{one.index}{' (current)' if one.current else ''}: {one.title} ({one.url})" for one in self.tabs]
        return "\n".join([*(lines or ["No tab is open."]), *self.news])


class Ended(Result):
    closed: bool

    def text(self) -> str:
        return "The browser is closed." if self.closed else "No browser was open."


class Installed(Result):
    program: str
    headless: bool

    def text(self) -> str:
        return f"The browser is installed: {self.program} is used{'' if self.headless else ', with a window'}."


class Windows:
    """Opening, choosing and closing."""

    def __init__(self, house: House) -> None:
        self._house = house

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def browser_tabs(
        self,
        action: Annotated[Literal["list", "new", "close", "select"], Field(description="What to do")],
        index: Annotated[
            int | None, Field(description="Which tab, for close and select; by default the current", ge=0, le=1000)
        ] = None,
    ) -> Tabs:
        """List the tabs, open an empty one, close one or make one the current."""
        async with self._house.use() as session:
            if action == "new":
                await session.new_tab()
            elif action == "select":
                if index is None:
                    raise InvalidArguments("Say which tab to select.", field="index")
                chosen = session.select(index)
                with contextlib.suppress(DialogOpened):  # the tab is selected all the same
                    await chosen.perform("Selecting the tab", chosen.page.bring_to_front())
            elif action == "close":
                chosen = session.current if index is None else session.find(index)
                if chosen is not None:
                    await session.shut(chosen)
            return await _tabs(session)

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def browser_resize(
        self,
        width: Annotated[int, Field(description="Width of the page in pixels", ge=100, le=4000)],
        height: Annotated[int, Field(description="Height of the page in pixels", ge=100, le=4000)],
    ) -> Done:
        """Change the size of the page, for instance to see how it looks on a phone."""
        async with self._house.use() as session:
            tab = await session.tab()
            call = tab.page.set_viewport_size({"width": width, "height": height})
            return await session.act(tab, "Resizing", call, f"The page is {width} by {height} pixels now.")

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def browser_close(self) -> Ended:
        """Close the browser with all its tabs. Logins stay."""
        return Ended(closed=await self._house.leave())

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def browser_install(self) -> Installed:
        """Tell which browser is used, or what to run to get one. Installs nothing by itself."""
        require_driver()
        program = find_browser(self._house.config.path)
        return Installed(program=program.name, headless=self._house.config.headless)


async def _tabs(session: Session) -> Tabs:
    lines = [
        TabLine(index=number, title=await tab.title(), url=session.url(tab), current=tab is session.current)
        for number, tab in enumerate(list(session.tabs))
    ]
    return Tabs(tabs=lines, news=session.news())
