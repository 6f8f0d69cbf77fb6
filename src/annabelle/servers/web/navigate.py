"""Tools that open pages, go back and wait."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from pydantic import Field

from annabelle.core.errors import AnnabelleError, InvalidArguments, RetryByModel, ToolTimeout, Unavailable
from annabelle.servers.kit import tool
from annabelle.servers.web.browser_pool import BrowserPool
from annabelle.servers.web.browser_session import BrowserSession
from annabelle.servers.web.page_events import BecameDownload
from annabelle.servers.web.proxy import PROXY_HEADER
from annabelle.servers.web.results import ActionResult
from annabelle.servers.web.tab import BrowserTab, DialogOpened

if TYPE_CHECKING:
    from playwright.async_api import Response


BLANK = "about:blank"
_BARE = re.compile(r"[\w.-]+(?::\d{1,5})?(?:[/?#].*)?", re.DOTALL)
_UNFIT = re.compile(r"[\x00-\x20\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


def check_address(url: str) -> str:
    """Check an address. Without a scheme it becomes https."""
    address = url.strip()
    if _UNFIT.search(address):
        raise InvalidArguments("The address contains spaces or control characters.", field="url")
    if address == BLANK:
        return address
    if _BARE.fullmatch(address):
        address = f"https://{address}"
    try:
        parts = urlsplit(address)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidArguments("This is not a valid address.", hint="It looks like https://….", field="url") from error
    if parts.scheme not in ("http", "https"):
        raise InvalidArguments("Only http and https addresses are opened.", field="url")
    if not host:
        raise InvalidArguments("The address names no site.", hint="It looks like https://….", field="url")
    if "@" in parts.netloc:
        raise InvalidArguments("Addresses with a name or password in them are not opened.", field="url")
    return address


def same_site(page: str, site: str) -> bool:
    """Whether a page belongs to a vault item's site: same port and same host, apart from `www.`.

    A subdomain may belong to somebody else. A secret for https is not given out over http.
    """
    try:
        here, there = urlsplit(page), urlsplit(site if "://" in site else f"//{site}")
        ports = here.port, there.port
    except ValueError:
        return False
    if here.scheme not in ("http", "https") or (there.scheme == "https" and here.scheme == "http"):
        return False
    host = _host(here.hostname)
    usual = {"http": 80, "https": 443}
    same_port = (ports[0] or usual[here.scheme]) == (ports[1] or usual[here.scheme])
    return bool(host) and host == _host(there.hostname) and same_port


def _host(name: str | None) -> str:
    try:
        ascii_name = (name or "").encode("idna").decode()  # as browsers spell it
    except UnicodeError:
        return ""
    return ascii_name.lower().rstrip(".").removeprefix("www.")


_LOOK_SECONDS = 0.2
_MAX_FRAMES = 20
_PORTS = {"http": 80, "https": 443}


class NavigationTools:
    def __init__(self, pool: BrowserPool) -> None:
        self._pool = pool

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def browser_navigate(
        self, url: Annotated[str, Field(description="Address to open, http or https", min_length=1, max_length=4096)]
    ) -> ActionResult:
        """Open a web page in the current tab. Then read it with browser_snapshot, which also gives refs to act on."""
        address = check_address(url)
        if address != BLANK:
            await self._check_reachable(address)
        async with self._pool.use_session() as session:
            tab = await session.current_tab()
            return await self._open(session, tab, address)

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def browser_navigate_back(self) -> ActionResult:
        """Go back to the page before, as the browser's back button does."""
        async with self._pool.use_session() as session:
            tab = await session.current_tab()
            seconds = session.timeouts.navigation
            before = tab.page.url
            try:
                response = await tab.perform(
                    "Going back", tab.page.go_back(timeout=seconds * 1000, wait_until="domcontentloaded"), seconds
                )
            except DialogOpened:
                return await session.action_result("Going back waits for an answer.", tab)
            if response is None and tab.page.url == before:
                raise RetryByModel("There is no page before this one.", hint="Open one with browser_navigate.")
            return await session.action_result("Went back.", tab)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def browser_wait_for(
        self,
        time: Annotated[float | None, Field(description="Seconds to wait; with a text, at most", gt=0, le=60)] = None,
        text: Annotated[str | None, Field(description="Wait until this text is visible", max_length=1000)] = None,
        textGone: Annotated[
            str | None, Field(description="Wait until this text is no longer visible", max_length=1000)
        ] = None,
    ) -> ActionResult:
        """Wait for a text to appear or to go away, or for some seconds."""
        if time is None and not text and not textGone:
            raise InvalidArguments("Say what to wait for: time, text or textGone.", field="text")
        async with self._pool.use_session() as session:
            tab = await session.current_tab()
            if text:
                await _wait_for_text(tab, text, there=True, seconds=time)
            if textGone:
                await _wait_for_text(tab, textGone, there=False, seconds=time)
            if time is not None and not text and not textGone:
                await asyncio.sleep(time)
            return await session.action_result("Waited.", tab)

    async def _check_reachable(self, address: str) -> None:
        """Refuse before a browser is started. The proxy checks again."""
        parts = urlsplit(address)
        try:
            async with asyncio.timeout(self._pool.config.timeouts.navigation):
                await self._pool.host_access.resolve_allowed(parts.hostname or "", parts.port or _PORTS[parts.scheme])
        except TimeoutError:
            raise ToolTimeout("The address was not found in time.", hint="Try again later.") from None

    async def _open(self, session: BrowserSession, tab: BrowserTab, address: str) -> ActionResult:
        refused, downloads = len(session.proxy.refusals), session.downloads.begun
        seconds = session.timeouts.navigation
        try:
            response = await _goto(tab, address, seconds)
        except DialogOpened:
            return await session.action_result("Opening the page waits for an answer.", tab)
        except asyncio.CancelledError:
            tab.stop_loading()
            raise
        except ToolTimeout:
            tab.stop_loading()
            raise ToolTimeout(
                f"The site did not answer within {seconds:g} s.", hint="Try again later, or another address."
            ) from None
        except BecameDownload:
            if await session.downloads.wait_for_start(downloads, session.timeouts.settle):
                return await session.action_result("The address is a file, which is downloaded.", tab)
            raise
        except AnnabelleError as error:
            await _wait_for_error_page(tab)
            news = list(session.proxy.refusals)[refused:]
            raise (news[-1].error if news and isinstance(error, Unavailable) else error) from None
        if response is not None and response.headers.get(PROXY_HEADER) == session.proxy.own_mark:
            why = session.proxy.refusals[-1].error
            raise next(
                (one.error for one in reversed(session.proxy.refusals) if one.host == urlsplit(response.url).hostname),
                why,
            )
        status = f" The site answered {response.status}." if response is not None and response.status >= 400 else ""
        return await session.action_result(f"Opened the page.{status}", tab)


async def _goto(tab: BrowserTab, address: str, seconds: float) -> Response | None:
    """Open an address. Try again if the error page of the previous site interrupted it."""

    async def open_address() -> Response | None:
        return await tab.perform(
            "Opening the page",
            tab.page.goto(address, timeout=seconds * 1000, wait_until="domcontentloaded"),
            seconds,
        )

    try:
        return await open_address()
    except RetryByModel as error:
        if isinstance(error, DialogOpened) or "overtaken" not in error.message:
            raise
        return await open_address()


async def _wait_for_error_page(tab: BrowserTab) -> None:
    """Wait for the browser's error page, so that it does not interrupt the next navigation."""
    with contextlib.suppress(AnnabelleError):
        await tab.perform("Waiting", tab.page.wait_for_url("chrome-error:**", timeout=1000, wait_until="commit"))


async def _wait_for_text(tab: BrowserTab, text: str, *, there: bool, seconds: float | None) -> None:
    limit = seconds or tab.timeouts.action
    until = time.monotonic() + limit
    while await _is_visible(tab, text) is not there:
        if time.monotonic() > until:
            raise ToolTimeout(
                f"The text did not {'appear' if there else 'go away'} within {limit:g} s.",
                hint="Look at the page with browser_snapshot.",
            )
        await asyncio.sleep(_LOOK_SECONDS)


async def _is_visible(tab: BrowserTab, text: str) -> bool:
    for frame in tab.page.frames[:_MAX_FRAMES]:
        try:
            shown = frame.get_by_text(text).locator("visible=true")
            if await tab.perform("Waiting", shown.count()):
                return True
        except RetryByModel as error:
            if isinstance(error, DialogOpened):
                raise
    return False
