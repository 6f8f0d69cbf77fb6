"""One agent's running browser: its tabs, downloads and notices for the next result."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING

from annabelle.core.errors import AnnabelleError, RetryByModel, ToolTimeout
from annabelle.core.secrets.redactor import Redactor
from annabelle.servers.kit import StopSign, deferred_module, in_thread
from annabelle.servers.kit.files.workspace import Workspace
from annabelle.servers.web.config import BrowserTimeouts
from annabelle.servers.web.page_events import explain_browser_error, is_gone
from annabelle.servers.web.proxy import EgressProxy
from annabelle.servers.web.results import ActionResult, clean_line, clean_url
from annabelle.servers.web.tab import BrowserTab, DialogOpened

if TYPE_CHECKING:
    from playwright.async_api import Download

if TYPE_CHECKING:
    from playwright import async_api
    from playwright.async_api import BrowserContext, Page, Request
else:
    async_api = deferred_module("playwright.async_api")


FOLDER = "Downloads"
MAX_BYTES = 50_000_000
"""Limit for one file, and for all simultaneous downloads."""
MAX_AT_ONCE = 5
_LOOK_SECONDS = 0.25
_PATIENCE_SECONDS = 600.0


class BrowserDownloads:
    """Downloads of one browser. The browser writes unfinished files to `incoming`."""

    def __init__(self, incoming: Path, workspace: Workspace, news: Callable[[str], None]) -> None:
        self._incoming, self._workspace, self._news = incoming, workspace, news
        self._running: set[asyncio.Task[None]] = set()
        self.begun = 0
        self._arrival = asyncio.Event()

    def begin(self, download: Download) -> None:
        self.begun += 1
        self._arrival.set()
        work = self._keep(download) if len(self._running) < MAX_AT_ONCE else self._refuse(download)
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def wait_for_start(self, since: int, seconds: float) -> bool:
        """Wait until a download after number `since` begins. The browser may report it a moment late."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.begun <= since:
                    self._arrival.clear()
                    await self._arrival.wait()
        return self.begun > since

    async def wait(self, seconds: float) -> None:
        if self._running:
            await asyncio.wait(list(self._running), timeout=seconds)

    @property
    def busy(self) -> int:
        return len(self._running)

    async def stop(self) -> None:
        for task in list(self._running):
            task.cancel()
        await self.wait(2)

    async def _refuse(self, download: Download) -> None:
        self._news(f"A download was refused: at most {MAX_AT_ONCE} run at the same time.")
        async with asyncio.timeout(5):
            await download.cancel()

    async def _keep(self, download: Download) -> None:
        name = clean_line(download.suggested_filename, 100)
        try:
            path = await self._wait_for_file(download)
            if path is None:
                self._news(f"The download of {name} was stopped: it is larger than {MAX_BYTES} bytes.")
                return
            kept = await self._workspace.keep(FOLDER, download.suggested_filename, await in_thread(_file_reader(path)))
            self._news(f"Downloaded {kept.path} ({kept.size} bytes).")
        except AnnabelleError as error:
            self._news(f"The download of {name} was not kept: {error.message}")
        except Exception:  # noqa: BLE001  the browser's error class is not loaded here
            self._news(f"The download of {name} failed.")
        finally:
            with contextlib.suppress(Exception):
                await download.delete()

    async def _wait_for_file(self, download: Download) -> Path | None:
        """The finished file, or None if it grew too large and was stopped."""
        arriving = asyncio.ensure_future(download.path())
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                while not arriving.done():
                    await asyncio.wait([arriving], timeout=_LOOK_SECONDS)
                    if await in_thread(lambda _stop: _folder_size(self._incoming)) > MAX_BYTES:
                        await download.cancel()
                        return None
            path = arriving.result()
        finally:
            arriving.cancel()
        return path if path.stat().st_size <= MAX_BYTES else None


def _folder_size(folder: Path) -> int:
    total = 0
    for entry in folder.glob("*"):
        with contextlib.suppress(OSError):  # the file of a download that has just ended
            total += entry.stat().st_size
    return total


def _file_reader(path: Path) -> Callable[[StopSign], bytes]:
    return lambda _stop: path.read_bytes()


_log = logging.getLogger(__name__)

MAX_TABS = 20
_MAX_NEWS = 20


class BrowserSession:
    """A running browser. `alive` turns false as soon as the browser has ended."""

    def __init__(
        self,
        context: BrowserContext,
        proxy: EgressProxy,
        incoming: Path,
        workspace: Workspace,
        patience: BrowserTimeouts,
    ) -> None:
        self.context, self.proxy, self.timeouts = context, proxy, patience
        self.alive = True
        self.tabs: list[BrowserTab] = []
        self._current: BrowserTab | None = None
        self._notices: deque[str] = deque(maxlen=_MAX_NEWS)
        self._background: set[asyncio.Task[object]] = set()
        self._redact = Redactor()
        self._arrived = asyncio.Event()
        self._opening_own = 0
        self._expected_popups = 0
        self.downloads = BrowserDownloads(incoming, workspace, self.add_notice)
        for page in context.pages:
            self._add(page)
        context.on("page", self._on_page)
        context.on("request", self._on_request)
        context.on("close", self._on_context_closed)

    def add_notice(self, sentence: str) -> None:
        """Add a sentence to the next result."""
        if sentence not in self._notices:
            self._notices.append(sentence)

    def take_notices(self) -> list[str]:
        errors = sum(tab.traffic.new_errors for tab in self.tabs)
        if errors:
            self.add_notice(f"{errors} new console error{'s' if errors > 1 else ''}.")
        for tab in self.tabs:
            tab.traffic.new_errors = 0
        told = list(self._notices)
        self._notices.clear()
        return told

    async def current_tab(self, *, dialog: bool = False) -> BrowserTab:
        """The current tab, or a new one. Raises RetryByModel while a dialog is open, unless `dialog` is set."""
        tab = self._current
        if tab is not None:
            await tab.wait_for_pending()
            if tab.crashed or await tab.is_hanging():
                self.add_notice("The page hung or crashed, so its tab was closed.")
                await self.close_tab(tab)
                tab = self._current
        if tab is None:
            tab = await self.new_tab()
        if not dialog and (sentence := tab.dialogs.describe()) is not None:
            raise RetryByModel(sentence, hint="Answer it with browser_handle_dialog first.")
        return tab

    async def new_tab(self) -> BrowserTab:
        """Open an empty tab and make it the current one."""
        if len(self.tabs) >= MAX_TABS:
            raise RetryByModel(f"There are {MAX_TABS} tabs already.", hint="Close some with browser_tabs.")
        self._opening_own += 1
        try:
            async with asyncio.timeout(self.timeouts.action):
                page = await self.context.new_page()
        except async_api.Error as error:
            self.alive = not is_gone(error.message)
            raise explain_browser_error(error.message, "Opening a tab", self.timeouts.action) from None
        except TimeoutError:
            raise ToolTimeout("The browser opened no tab in time.", hint="Close it with browser_close.") from None
        finally:
            self._opening_own -= 1
        self._current = self._add(page)
        return self._current

    def find(self, index: int) -> BrowserTab:
        if not 0 <= index < len(self.tabs):
            raise RetryByModel(f"There is no tab {index}.", hint="browser_tabs with action list shows them.")
        return self.tabs[index]

    def select(self, index: int) -> BrowserTab:
        self._current = self.find(index)
        return self._current

    @property
    def current(self) -> BrowserTab | None:
        return self._current

    async def close_tab(self, tab: BrowserTab) -> None:
        """Close a tab, even if its page objects."""
        self._remove(tab)
        with contextlib.suppress(TimeoutError, async_api.Error):
            async with asyncio.timeout(self.timeouts.action):
                await tab.page.close()

    async def perform_action(
        self, tab: BrowserTab, doing: str, call: Coroutine[None, None, object], did: str
    ) -> ActionResult:
        with contextlib.suppress(DialogOpened):  # the result shows it
            await tab.perform(doing, call)
        return await self.action_result(did, tab)

    async def action_result(self, did: str, tab: BrowserTab) -> ActionResult:
        """Result of an action, after a short wait for its effects."""
        title = await tab.title()  # after this round trip the effects of the action are known
        await tab.wait_for_load()
        await self._wait_for_popups()
        await self.downloads.wait(self.timeouts.settle)
        title = await tab.title() or title
        if self.downloads.busy:
            self.add_notice("A download is still running; a later result tells when it has arrived.")
        return ActionResult(
            did=did,
            url=self.url(tab),
            title=title,
            dialog=tab.dialogs.describe(),
            news=self.take_notices(),
        )

    def url(self, tab: BrowserTab) -> str:
        return clean_url(tab.page.url, self._redact)

    async def close(self) -> None:
        """Close the browser, within a bounded time."""
        self.alive = False
        await self.downloads.stop()
        with contextlib.suppress(TimeoutError, async_api.Error):
            async with asyncio.timeout(5):
                await self.context.close()
        await self.proxy.close()
        for task in list(self._background):
            task.cancel()

    def _add(self, page: Page) -> BrowserTab:
        known = next((tab for tab in self.tabs if tab.page == page), None)
        if known is not None:
            return known
        tab = BrowserTab(page, self.timeouts, self._redact, self._spawn, self.add_notice, self._mark_dead)
        page.on("close", lambda _page: self._on_tab_closed(tab))
        page.on("download", self.downloads.begin)
        self.tabs.append(tab)
        if self._current is None:
            self._current = tab
        return tab

    def _on_request(self, request: Request) -> None:
        """A navigation request without a frame comes from a popup that is about to open."""
        if not self._opening_own and request.is_navigation_request():
            try:
                _ = request.frame
            except async_api.Error:
                self._expected_popups += 1
                self._arrived.clear()

    async def _wait_for_popups(self) -> None:
        if self._expected_popups:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.timeouts.settle):
                    await self._arrived.wait()
            self._expected_popups = 0

    def _on_page(self, page: Page) -> None:
        self._expected_popups = max(self._expected_popups - 1, 0)
        if not self._expected_popups:
            self._arrived.set()
        if self._opening_own:
            self._add(page)
        elif len(self.tabs) >= MAX_TABS:
            self.add_notice("The page opened more tabs than are allowed; they were closed.")
            self._spawn(page.close())
        else:
            self._add(page)
            self.add_notice(f"The page opened tab {len(self.tabs) - 1}: select it with browser_tabs.")

    def _on_tab_closed(self, tab: BrowserTab) -> None:
        if tab in self.tabs:
            self._remove(tab)
            self.add_notice("A page closed its own tab.")

    def _remove(self, tab: BrowserTab) -> None:
        if tab in self.tabs:
            self.tabs.remove(tab)
        tab.dialogs.forget()
        if self._current is tab:
            self._current = self.tabs[-1] if self.tabs else None

    def _on_context_closed(self, _context: BrowserContext) -> None:
        self._mark_dead()

    def _mark_dead(self) -> None:
        self.alive = False

    def _spawn(self, work: Coroutine[None, None, object]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._on_background_done)

    def _on_background_done(self, task: asyncio.Task[object]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.debug("beside a call: %s", type(error).__name__)
