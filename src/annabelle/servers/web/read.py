"""Tools that show the page: snapshot, text, screenshot, console and network."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Literal, cast

from pydantic import Field

from annabelle.core.errors import AnnabelleError, InvalidArguments, RetryByModel, Unavailable
from annabelle.core.secrets.redactor import MASK
from annabelle.servers.kit import tool
from annabelle.servers.web.browser_pool import BrowserPool
from annabelle.servers.web.browser_session import BrowserSession
from annabelle.servers.web.page_events import LEVELS, STATIC, Level
from annabelle.servers.web.results import FileName, PageContent, SavedPage, clean_text, keep_file
from annabelle.servers.web.tab import BrowserTab, DialogOpened

if TYPE_CHECKING:
    from playwright.async_api import Frame, Locator


_VALUE = re.compile(r"^(?P<head>\s*- .*?(?:\]'?|text|textbox)): (?P<value>.+)$")
_VALUES = "fields => fields.map(field => field.value)"
_MAX_FRAMES = 20
_SHORT = 4


async def mask_passwords(tab: BrowserTab, tree: str) -> str:
    secrets: set[str] = set()
    for frame in tab.page.frames[:_MAX_FRAMES]:
        try:
            found = await tab.perform("Reading", frame.eval_on_selector_all("input[type=password]", _VALUES))
        except AnnabelleError:
            continue  # the frame has just gone away
        secrets |= {str(value) for value in cast("list[object]", found) if value}
    if not secrets:
        return tree
    normal = {" ".join(secret.split()) for secret in secrets} | secrets
    return "\n".join(_mask_line(line, normal) for line in tree.split("\n"))


def _mask_line(line: str, secrets: set[str]) -> str:
    match = _VALUE.match(line)
    if match is None:
        return line
    head, value = match["head"], _unquote(match["value"])
    if value in secrets and ("textbox" in head or len(value) >= _SHORT):
        return f"{head}: {MASK}"
    return line


def _unquote(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value[1:-1]
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    return value


SHOWN_CHARS = 20_000
MAX_HEIGHT = 16_000
"""In pixels; browsers render no higher pictures."""
_SLOW = 3
"""Reading a large page may take this many times as long as an action."""
MAX_ELEMENTS = 10_000
_COUNT = "root => root.querySelectorAll('*').length"
_READ = """(element, html) => (html ? element.outerHTML : element.innerText) ?? element.textContent ?? ''"""


class PageReadTools:
    """Reading changes nothing on the page. Not declared read-only, because a call can save what it read as a file."""

    def __init__(self, pool: BrowserPool) -> None:
        self._pool = pool

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def browser_snapshot(
        self,
        filename: FileName = None,
        selector: Annotated[
            str | None, Field(description="CSS selector of the part to show: main, #results", max_length=500)
        ] = None,
    ) -> PageContent:
        """Show the page as a tree of its elements, each with a ref like e12 that the other tools take. Better than a
        screenshot for acting on a page."""
        async with self._pool.use_session() as session:
            tab = await session.current_tab()
            part = tab.page.locator(f"css={selector}").first if selector else None
            await _refuse_huge(tab, part)
            seconds = session.timeouts.action * _SLOW
            view = tab.page if part is None else part
            tree = await tab.perform("Reading the page", view.aria_snapshot(mode="ai", timeout=seconds * 1000), seconds)
            text = await mask_passwords(tab, clean_text(tree))
            return await self._content(session, tab, text, filename, ".yml", "snapshot.yml")

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def browser_read(
        self,
        format: Annotated[Literal["text", "html"], Field(description="Visible text, or HTML")] = "text",
        ref: Annotated[str | None, Field(description="Only this element, by its ref", max_length=40)] = None,
        filename: FileName = None,
    ) -> PageContent:
        """Give the text or the HTML of the page, or of one element."""
        async with self._pool.use_session() as session:
            tab = await session.current_tab()
            element = await tab.find_element(ref) if ref else tab.page.locator("html")
            limit = session.timeouts.action
            found = await tab.perform(
                "Reading the page", element.evaluate(_READ, format == "html", timeout=limit * 1000)
            )
            ending = ".html" if format == "html" else ".txt"
            return await self._content(session, tab, clean_text(str(found)), filename, ending, f"page{ending}")

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def browser_take_screenshot(
        self,
        type: Annotated[Literal["png", "jpeg"], Field(description="Kind of picture")] = "png",
        filename: Annotated[
            str | None, Field(description="File of the workspace to save to; by default one in Images/", max_length=500)
        ] = None,
        element: Annotated[
            str | None, Field(description="What the element is, in words, when ref is given", max_length=500)
        ] = None,
        ref: Annotated[str | None, Field(description="Only this element, by its ref", max_length=40)] = None,
        fullPage: Annotated[bool, Field(description="The whole page instead of the part that is visible")] = False,
    ) -> SavedPage:
        """Save a picture of the page, or of one element, in the workspace. To act on the page use browser_snapshot."""
        if ref and fullPage:
            raise InvalidArguments("A picture is of one element or of the whole page, not of both.", field="fullPage")
        async with self._pool.use_session() as session:
            tab = await session.current_tab()
            seconds = session.timeouts.action * _SLOW
            note = None
            if ref:
                target = await tab.find_element(ref)
                shot = target.screenshot(type=type, timeout=seconds * 1000)
            elif fullPage and (height := await _page_height(tab)) > MAX_HEIGHT:
                note = f"The page is {height} pixels high; the picture shows the first {MAX_HEIGHT}."
                width = (tab.page.viewport_size or {"width": 1280})["width"]
                clip = {"x": 0.0, "y": 0.0, "width": float(width), "height": float(MAX_HEIGHT)}
                shot = tab.page.screenshot(type=type, full_page=True, clip=clip, timeout=seconds * 1000)  # pyright: ignore[reportArgumentType]  a TypedDict by another name
            else:
                shot = tab.page.screenshot(type=type, full_page=fullPage, timeout=seconds * 1000)
            picture = await tab.perform("Taking the picture", shot, seconds)
            kept = await keep_file(self._pool.workspace, filename, "Images", f".{type}", picture)
            return SavedPage(path=kept.path, size=kept.size, url=session.url(tab), note=note)

    async def _content(
        self, session: BrowserSession, tab: BrowserTab, text: str, filename: str | None, ending: str, name: str
    ) -> PageContent:
        page = PageContent(
            url=session.url(tab), title=await tab.title(), total_chars=len(text), news=session.take_notices()
        )
        if filename:
            kept = await keep_file(self._pool.workspace, filename, "Documents", ending, text.encode())
            return page.model_copy(update={"content": "(saved, not shown)", "rest": kept.path})
        shown = await self._pool.overflow.show_text(text, SHOWN_CHARS, name)
        return page.model_copy(update={"content": shown.text, "rest": shown.rest})


async def _refuse_huge(tab: BrowserTab, part: Locator | None) -> None:
    """Building a tree takes quadratic time, and the page is blocked meanwhile."""
    if part is not None:
        if not await tab.perform("Finding the part", part.count()):
            raise RetryByModel("Nothing on the page fits this selector.", hint="Leave it out to see the whole page.")
        counts = [await tab.perform("Counting", part.evaluate(_COUNT))]
    else:
        counts = [await _count_elements(tab, frame) for frame in tab.page.frames[:_MAX_FRAMES]]
    total = sum(int(count) for count in counts if isinstance(count, int | float))
    if total > MAX_ELEMENTS:
        raise RetryByModel(
            f"The page has {total} elements, more than the {MAX_ELEMENTS} that are shown as a tree.",
            hint="Give the selector of a part of it, or read its text with browser_read.",
        )


async def _count_elements(tab: BrowserTab, frame: Frame) -> object:
    try:
        return await tab.perform("Counting", frame.evaluate(f"() => ({_COUNT})(document)"))
    except (RetryByModel, Unavailable) as error:
        if isinstance(error, DialogOpened):
            raise
        return 0  # the frame has just gone away


async def _page_height(tab: BrowserTab) -> int:
    found = await tab.perform("Measuring the page", tab.page.evaluate("() => document.documentElement.scrollHeight"))
    return int(found) if isinstance(found, int | float) else 0


_SHOWN_CHARS = 10_000


class PageLogTools:
    """Both work while a dialog is open: they do not query the page."""

    def __init__(self, pool: BrowserPool) -> None:
        self._pool = pool

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def browser_console_messages(
        self,
        level: Annotated[
            Level, Field(description="The least important level to show; more severe ones are too")
        ] = "info",
        filename: FileName = None,
    ) -> PageContent:
        """List what the page wrote to its console, errors of its scripts included; the last 300."""
        async with self._pool.use_session() as session:
            tab = await session.current_tab(dialog=True)
            wanted = LEVELS[: LEVELS.index(level) + 1]
            lines = [
                f"[{said.level}] {said.text}" + (f" ({said.where})" if said.where else "")
                for said in tab.traffic.console
                if said.level in wanted
            ]
            return await self._show_lines(session, tab, lines, filename, "console.txt")

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def browser_network_requests(
        self,
        includeStatic: Annotated[
            bool, Field(description="Also pictures, fonts, styles and scripts that came properly")
        ] = False,
        filename: FileName = None,
    ) -> PageContent:
        """List what the page asked of the network: method, address, kind and status; the last 300."""
        async with self._pool.use_session() as session:
            tab = await session.current_tab(dialog=True)
            lines = [
                f"{one.method} {one.url} [{one.kind}] {one.outcome}"
                for one in tab.traffic.requests
                if includeStatic or one.kind not in STATIC or not one.outcome.startswith("2")
            ]
            return await self._show_lines(session, tab, lines, filename, "requests.txt")

    async def _show_lines(
        self, session: BrowserSession, tab: BrowserTab, lines: list[str], filename: str | None, name: str
    ) -> PageContent:
        text = "\n".join(lines) or "Nothing."
        page = PageContent(url=session.url(tab), title=await tab.title(), total_chars=len(text))
        if filename:
            kept = await keep_file(self._pool.workspace, filename, "Documents", ".txt", text.encode())
            return page.model_copy(update={"content": "(saved, not shown)", "rest": kept.path})
        shown = await self._pool.overflow.show_text(text, _SHOWN_CHARS, name)
        return page.model_copy(update={"content": shown.text, "rest": shown.rest})
