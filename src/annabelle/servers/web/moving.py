"""Tools that go from page to page."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from pydantic import Field

from annabelle.core.errors import AnnabelleError, InvalidArguments, RetryByModel, ToolTimeout, Unavailable
from annabelle.servers.kit import tool
from annabelle.servers.web.addresses import BLANK, readable
from annabelle.servers.web.gate import MARK
from annabelle.servers.web.house import House
from annabelle.servers.web.results import Done
from annabelle.servers.web.session import Session
from annabelle.servers.web.tab import DialogOpened, Tab
from annabelle.servers.web.trouble import BecameDownload

if TYPE_CHECKING:
    from playwright.async_api import Response

_LOOK_SECONDS = 0.2
_MAX_FRAMES = 20
_PORTS = {"http": 80, "https": 443}


class Moving:
    """Opening pages, going back, and waiting for what a page will show."""

    def __init__(self, house: House) -> None:
        self._house = house

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def browser_navigate(
        self, url: Annotated[str, Field(description="Address to open, http or https", min_length=1, max_length=4096)]
    ) -> Done:
        """Open a web page in the current tab. Then read it with browser_snapshot, which also gives refs to act on."""
        address = readable(url)
        if address != BLANK:
            await self._judge(address)
        async with self._house.use() as session:
            tab = await session.tab()
            return await self._open(session, tab, address)

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def browser_navigate_back(self) -> Done:
        """Go back to the page before, as the browser's back button does."""
        async with self._house.use() as session:
            tab = await session.tab()
            seconds = session.patience.navigation
            before = tab.page.url
            try:
                response = await tab.perform(
                    "Going back", tab.page.go_back(timeout=seconds * 1000, wait_until="domcontentloaded"), seconds
                )
            except DialogOpened:
                return await session.done("Going back waits for an answer.", tab)
            if response is None and tab.page.url == before:
                raise RetryByModel("There is no page before this one.", hint="Open one with browser_navigate.")
            return await session.done("Went back.", tab)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def browser_wait_for(
        self,
        time: Annotated[float | None, Field(description="Seconds to wait; with a text, at most", gt=0, le=60)] = None,
        text: Annotated[str | None, Field(description="Wait until this text is visible", max_length=1000)] = None,
        textGone: Annotated[
            str | None, Field(description="Wait until this text is no longer visible", max_length=1000)
        ] = None,
    ) -> Done:
        """Wait for a text to appear or to go away, or for some seconds."""
        if time is None and not text and not textGone:
            raise InvalidArguments("Say what to wait for: time, text or textGone.", field="text")
        async with self._house.use() as session:
            tab = await session.tab()
            if text:
                await _until(tab, text, there=True, seconds=time)
            if textGone:
                await _until(tab, textGone, there=False, seconds=time)
            if time is not None and not text and not textGone:
                await asyncio.sleep(time)
            return await session.done("Waited.", tab)

    async def _judge(self, address: str) -> None:
        """Say no before a browser is started. What counts is the gate's own judgement, later."""
        parts = urlsplit(address)
        try:
            async with asyncio.timeout(self._house.config.patience.navigation):
                await self._house.reach.addresses(parts.hostname or "", parts.port or _PORTS[parts.scheme])
        except TimeoutError:
            raise ToolTimeout("The address was not found in time.", hint="Try again later.") from None

    async def _open(self, session: Session, tab: Tab, address: str) -> Done:
        refused, downloads = len(session.gate.refusals), session.downloads.begun
        seconds = session.patience.navigation
        try:
            response = await _goto(tab, address, seconds)
        except DialogOpened:
            return await session.done("Opening the page waits for an answer.", tab)
        except asyncio.CancelledError:
            tab.stop_loading()
            raise
        except ToolTimeout:
            tab.stop_loading()
            raise ToolTimeout(
                f"The site did not answer within {seconds:g} s.", hint="Try again later, or another address."
            ) from None
        except BecameDownload:
            if await session.downloads.began(downloads, session.patience.settle):
                return await session.done("The address is a file, which is downloaded.", tab)
            raise
        except AnnabelleError as error:
            await _after_failure(tab)
            news = list(session.gate.refusals)[refused:]
            raise (news[-1].error if news and isinstance(error, Unavailable) else error) from None
        if response is not None and response.headers.get(MARK) == session.gate.mark:
            why = session.gate.refusals[-1].error
            raise next(
                (one.error for one in reversed(session.gate.refusals) if one.host == urlsplit(response.url).hostname),
                why,
            )
        status = f" The site answered {response.status}." if response is not None and response.status >= 400 else ""
        return await session.done(f"Opened the page.{status}", tab)


async def _goto(tab: Tab, address: str, seconds: float) -> Response | None:
    """Open an address; once more when the error page of a site before it came in between."""

    async def go() -> Response | None:
        return await tab.perform(
            "Opening the page",
            tab.page.goto(address, timeout=seconds * 1000, wait_until="domcontentloaded"),
            seconds,
        )

    try:
        return await go()
    except RetryByModel as error:
        if isinstance(error, DialogOpened) or "overtaken" not in error.message:
            raise
        return await go()


async def _after_failure(tab: Tab) -> None:
    """The browser shows a page about a site it could not open; the next navigation must not meet it half way."""
    with contextlib.suppress(AnnabelleError):
        await tab.perform("Waiting", tab.page.wait_for_url("chrome-error:**", timeout=1000, wait_until="commit"))


async def _until(tab: Tab, text: str, *, there: bool, seconds: float | None) -> None:
    limit = seconds or tab.patience.action
    until = time.monotonic() + limit
    while await _visible(tab, text) is not there:
        if time.monotonic() > until:
            raise ToolTimeout(
                f"The text did not {'appear' if there else 'go away'} within {limit:g} s.",
                hint="Look at the page with browser_snapshot.",
            )
        await asyncio.sleep(_LOOK_SECONDS)


async def _visible(tab: Tab, text: str) -> bool:
    for frame in tab.page.frames[:_MAX_FRAMES]:
        try:
            shown = frame.get_by_text(text).locator("visible=true")
            if await tab.perform("Waiting", shown.count()):
                return True
        except RetryByModel as error:
            if isinstance(error, DialogOpened):
                raise
    return False
