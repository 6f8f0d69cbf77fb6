"""Tools that show the page: as a tree with refs, as text or HTML, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from annabelle.core.errors import InvalidArguments, RetryByModel, Unavailable
from annabelle.servers.kit import tool
from annabelle.servers.web.house import House
from annabelle.servers.web.keeping import FileName, keep
from annabelle.servers.web.masking import mask_passwords
from annabelle.servers.web.results import Content, Saved
from annabelle.servers.web.session import Session
from annabelle.servers.web.tab import DialogOpened, Tab
from annabelle.servers.web.wording import shown_text

if TYPE_CHECKING:
    from playwright.async_api import Frame, Locator

SHOWN_CHARS = 20_000
MAX_HEIGHT = 16_000
"""Pixels; browsers draw no picture that is higher."""
_SLOW = 3
"""How many times longer than an action a look at a large page may take."""
MAX_ELEMENTS = 10_000
_MAX_FRAMES = 20
_COUNT = "root => root.querySelectorAll('*').length"
_READ = """(element, html) => (html ? element.outerHTML : element.innerText) ?? element.textContent ?? ''"""


class Looking:
    """Reading changes nothing on the page. Not declared read-only, because a call can save what it read as a file."""

    def __init__(self, house: House) -> None:
        self._house = house

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def browser_snapshot(
        self,
        filename: FileName = None,
        selector: Annotated[
            str | None, Field(description="CSS selector of the part to show: main, #results", max_length=500)
        ] = None,
    ) -> Content:
        """Show the page as a tree of its elements, each with a ref like e12 that the other tools take. Better than a
        screenshot for acting on a page."""
        async with self._house.use() as session:
            tab = await session.tab()
            part = tab.page.locator(f"css={selector}").first if selector else None
            await _refuse_huge(tab, part)
            seconds = session.patience.action * _SLOW
            view = tab.page if part is None else part
            tree = await tab.perform("Reading the page", view.aria_snapshot(mode="ai", timeout=seconds * 1000), seconds)
            text = await mask_passwords(tab, shown_text(tree))
            return await self._content(session, tab, text, filename, ".yml", "snapshot.yml")

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def browser_read(
        self,
        format: Annotated[Literal["text", "html"], Field(description="Visible text, or HTML")] = "text",
        ref: Annotated[str | None, Field(description="Only this element, by its ref", max_length=40)] = None,
        filename: FileName = None,
    ) -> Content:
        """Give the text or the HTML of the page, or of one element."""
        async with self._house.use() as session:
            tab = await session.tab()
            element = await tab.target(ref) if ref else tab.page.locator("html")
            limit = session.patience.action
            found = await tab.perform(
                "Reading the page", element.evaluate(_READ, format == "html", timeout=limit * 1000)
            )
            ending = ".html" if format == "html" else ".txt"
            return await self._content(session, tab, shown_text(str(found)), filename, ending, f"page{ending}")

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
    ) -> Saved:
        """Save a picture of the page, or of one element, in the workspace. To act on the page use browser_snapshot."""
        if ref and fullPage:
            raise InvalidArguments("A picture is of one element or of the whole page, not of both.", field="fullPage")
        async with self._house.use() as session:
            tab = await session.tab()
            seconds = session.patience.action * _SLOW
            note = None
            if ref:
                target = await tab.target(ref)
                shot = target.screenshot(type=type, timeout=seconds * 1000)
            elif fullPage and (height := await _height(tab)) > MAX_HEIGHT:
                note = f"The page is {height} pixels high; the picture shows the first {MAX_HEIGHT}."
                width = (tab.page.viewport_size or {"width": 1280})["width"]
                clip = {"x": 0.0, "y": 0.0, "width": float(width), "height": float(MAX_HEIGHT)}
                shot = tab.page.screenshot(type=type, full_page=True, clip=clip, timeout=seconds * 1000)  # pyright: ignore[reportArgumentType]  a TypedDict by another name
            else:
                shot = tab.page.screenshot(type=type, full_page=fullPage, timeout=seconds * 1000)
            picture = await tab.perform("Taking the picture", shot, seconds)
            kept = await keep(self._house.workspace, filename, "Images", f".{type}", picture)
            return Saved(path=kept.path, size=kept.size, url=session.url(tab), note=note)

    async def _content(
        self, session: Session, tab: Tab, text: str, filename: str | None, ending: str, name: str
    ) -> Content:
        page = Content(url=session.url(tab), title=await tab.title(), total_chars=len(text), news=session.news())
        if filename:
            kept = await keep(self._house.workspace, filename, "Documents", ending, text.encode())
            return page.model_copy(update={"content": "(saved, not shown)", "rest": kept.path})
        shown = await self._house.overflow.show(text, SHOWN_CHARS, name)
        return page.model_copy(update={"content": shown.text, "rest": shown.rest})


async def _refuse_huge(tab: Tab, part: Locator | None) -> None:
    """The time a tree takes grows with the square of its size, and the page stands still meanwhile."""
    if part is not None:
        if not await tab.perform("Finding the part", part.count()):
            raise RetryByModel("Nothing on the page fits this selector.", hint="Leave it out to see the whole page.")
        counts = [await tab.perform("Counting", part.evaluate(_COUNT))]
    else:
        counts = [await _count(tab, frame) for frame in tab.page.frames[:_MAX_FRAMES]]
    total = sum(int(count) for count in counts if isinstance(count, int | float))
    if total > MAX_ELEMENTS:
        raise RetryByModel(
            f"The page has {total} elements, more than the {MAX_ELEMENTS} that are shown as a tree.",
            hint="Give the selector of a part of it, or read its text with browser_read.",
        )


async def _count(tab: Tab, frame: Frame) -> object:
    try:
        return await tab.perform("Counting", frame.evaluate(f"() => ({_COUNT})(document)"))
    except (RetryByModel, Unavailable) as error:
        if isinstance(error, DialogOpened):
            raise
        return 0  # a frame that went away between two looks


async def _height(tab: Tab) -> int:
    found = await tab.perform("Measuring the page", tab.page.evaluate("() => document.documentElement.scrollHeight"))
    return int(found) if isinstance(found, int | float) else 0
