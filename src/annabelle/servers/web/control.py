"""Tools for the browser itself: tabs, window, dialogs and scripts."""

from __future__ import annotations

import contextlib
from typing import Annotated, Literal, cast

from pydantic import Field

from annabelle.core.errors import InvalidArguments, RetryByModel, ToolTimeout
from annabelle.servers.kit import Result, tool
from annabelle.servers.web.browser_pool import BrowserPool
from annabelle.servers.web.browser_session import BrowserSession
from annabelle.servers.web.config import find_browser, require_driver
from annabelle.servers.web.interact import Element
from annabelle.servers.web.results import ActionResult, PageContent, clean_line, clean_text
from annabelle.servers.web.tab import DialogOpened


class TabLine(Result):
    index: int
    title: str
    url: str
    current: bool


class TabList(Result):
    tabs: list[TabLine]
    news: list[str] = Field(default_factory=list)

    def to_text(self) -> str:
        lines = [f"{one.index}{' (current)' if one.current else ''}: {one.title} ({one.url})" for one in self.tabs]
        return "\n".join([*(lines or ["No tab is open."]), *self.news])


class BrowserClosed(Result):
    closed: bool

    def to_text(self) -> str:
        return "The browser is closed." if self.closed else "No browser was open."


class BrowserInstalled(Result):
    program: str
    headless: bool

    def to_text(self) -> str:
        return f"The browser is installed: {self.program} is used{'' if self.headless else ', with a window'}."


class WindowTools:
    def __init__(self, pool: BrowserPool) -> None:
        self._pool = pool

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def browser_tabs(
        self,
        action: Annotated[Literal["list", "new", "close", "select"], Field(description="What to do")],
        index: Annotated[
            int | None, Field(description="Which tab, for close and select; by default the current", ge=0, le=1000)
        ] = None,
    ) -> TabList:
        """List the tabs, open an empty one, close one or make one the current."""
        async with self._pool.use_session() as session:
            if action == "new":
                await session.new_tab()
            elif action == "select":
                if index is None:
                    raise InvalidArguments("Say which tab to select.", field="index")
                chosen = session.select(index)
                with contextlib.suppress(DialogOpened):  # the tab is selected nevertheless
                    await chosen.perform("Selecting the tab", chosen.page.bring_to_front())
            elif action == "close":
                chosen = session.current if index is None else session.find(index)
                if chosen is not None:
                    await session.close_tab(chosen)
            return await _list_tabs(session)

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def browser_resize(
        self,
        width: Annotated[int, Field(description="Width of the page in pixels", ge=100, le=4000)],
        height: Annotated[int, Field(description="Height of the page in pixels", ge=100, le=4000)],
    ) -> ActionResult:
        """Change the size of the page, for instance to see how it looks on a phone."""
        async with self._pool.use_session() as session:
            tab = await session.current_tab()
            call = tab.page.set_viewport_size({"width": width, "height": height})
            return await session.perform_action(tab, "Resizing", call, f"The page is {width} by {height} pixels now.")

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def browser_close(self) -> BrowserClosed:
        """Close the browser with all its tabs. Logins stay."""
        return BrowserClosed(closed=await self._pool.close_own())

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def browser_install(self) -> BrowserInstalled:
        """Tell which browser is used, or what to run to get one. Installs nothing by itself."""
        require_driver()
        program = find_browser(self._pool.config.path)
        return BrowserInstalled(program=program.name, headless=self._pool.config.headless)


async def _list_tabs(session: BrowserSession) -> TabList:
    lines = [
        TabLine(index=number, title=await tab.title(), url=session.url(tab), current=tab is session.current)
        for number, tab in enumerate(list(session.tabs))
    ]
    return TabList(tabs=lines, news=session.take_notices())


SHOWN_CHARS = 10_000
MAX_CHARS = 500_000
"""Limit of a result, applied inside the page."""

# The function is part of the script itself, not passed to eval, which a page may forbid.
_WRAPPED = """async element => {
  const limit = %d;
  try {
    const given = (%s
    );
    const value = typeof given === 'function' ? await given(element) : await given;
    let text;
    try { text = JSON.stringify(value); } catch (error) { text = undefined; }
    text = text === undefined ? String(value) : text;
    return {text: text.slice(0, limit), length: text.length};
  } catch (error) { return {error: String(error).slice(0, 500)}; }
}"""


class ScriptingTools:
    """Functions run in the page, with the page's own rights."""

    def __init__(self, pool: BrowserPool) -> None:
        self._pool = pool

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def browser_evaluate(
        self,
        function: Annotated[
            str,
            Field(
                description="JavaScript: () => document.title, or (element) => element.value with a ref",
                min_length=1,
                max_length=20_000,
            ),
        ],
        element: Element = None,
        ref: Annotated[
            str | None, Field(description="The element the function gets, by its ref", max_length=40)
        ] = None,
    ) -> PageContent:
        """Run a JavaScript function in the page and give back its result as JSON."""
        async with self._pool.use_session() as session:
            tab = await session.current_tab()
            target = await tab.find_element(ref) if ref else None
            script = _WRAPPED % (MAX_CHARS, function)
            milliseconds = session.timeouts.action * 1000
            await tab.channel()
            call = target.evaluate(script, timeout=milliseconds) if target is not None else tab.page.evaluate(script)
            try:
                found = cast("object", await tab.perform("The function", call))
            except ToolTimeout:
                await tab.stop_script()
                raise ToolTimeout(
                    f"The function took longer than {session.timeouts.action:g} s and was stopped.",
                    hint="Make it do less, or not wait.",
                ) from None
            text = _read_result(found)
            shown = await self._pool.overflow.show_text(text, SHOWN_CHARS, "result.json")
            return PageContent(
                url=session.url(tab),
                title=await tab.title(),
                content=shown.text,
                total_chars=shown.total_chars,
                rest=shown.rest,
                news=session.take_notices(),
            )

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def browser_handle_dialog(
        self,
        accept: Annotated[bool, Field(description="OK instead of Cancel")],
        promptText: Annotated[
            str | None, Field(description="What to answer, if the dialog asks for a text", max_length=10_000)
        ] = None,
    ) -> ActionResult:
        """Answer the dialog a page has opened (alert, confirm, prompt, leaving the page)."""
        async with self._pool.use_session() as session:
            tab = await session.current_tab(dialog=True)
            did = await tab.dialogs.answer_dialog(accept, promptText)
            await tab.after_dialog()
            return await session.action_result(did, tab)


def _read_result(found: object) -> str:
    if not isinstance(found, dict):
        raise RetryByModel("The function gave nothing that can be read.")
    facts = cast("dict[str, object]", found)
    if "error" in facts:
        raise RetryByModel(f"The function failed: {clean_line(str(facts['error']), 300)}")
    return clean_text(str(facts.get("text", "")))
