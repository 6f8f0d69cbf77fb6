"""One agent's browser while it runs: its tabs, what happened since the last call, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING

from annabelle.core.errors import RetryByModel, ToolTimeout
from annabelle.core.redact import Redactor
from annabelle.servers.kit import deferred_module
from annabelle.servers.kit.files.workspace import Workspace
from annabelle.servers.web.config import Patience
from annabelle.servers.web.downloads import Downloads
from annabelle.servers.web.gate import Gate
from annabelle.servers.web.results import Done
from annabelle.servers.web.tab import DialogOpened, Tab
from annabelle.servers.web.trouble import explain, gone
from annabelle.servers.web.wording import shown_url

if TYPE_CHECKING:
    from playwright import async_api
    from playwright.async_api import BrowserContext, Page, Request
else:
    async_api = deferred_module("playwright.async_api")

_log = logging.getLogger(__name__)

MAX_TABS = 20
_MAX_NEWS = 20


class Session:
    """Everything of a running browser. It is dead as soon as the browser ended, whoever ended it."""

    def __init__(
        self, context: BrowserContext, gate: Gate, incoming: Path, workspace: Workspace, patience: Patience
    ) -> None:
        self.context, self.gate, self.patience = context, gate, patience
        self.alive = True
        self.tabs: list[Tab] = []
        self._current: Tab | None = None
        self._news: deque[str] = deque(maxlen=_MAX_NEWS)
        self._beside: set[asyncio.Task[object]] = set()
        self._redact = Redactor()
        self._arrived = asyncio.Event()
        self._ours = 0
        self._coming = 0
        self.downloads = Downloads(incoming, workspace, self.tell)
        for page in context.pages:
            self._add(page)
        context.on("page", self._opened)
        context.on("request", self._asked)
        context.on("close", self._ended)

    def tell(self, sentence: str) -> None:
        """Something the next result mentions."""
        if sentence not in self._news:
            self._news.append(sentence)

    def news(self) -> list[str]:
        """What was not told yet."""
        errors = sum(tab.traffic.new_errors for tab in self.tabs)
        if errors:
            self.tell(f"{errors} new console error{'s' if errors > 1 else ''}.")
        for tab in self.tabs:
            tab.traffic.new_errors = 0
        told = list(self._news)
        self._news.clear()
        return told

    async def tab(self, *, dialog: bool = False) -> Tab:
        """The tab that is used now; an empty one when there is none. While a dialog is open nothing else works."""
        tab = self._current
        if tab is not None:
            await tab.rest()
            if tab.crashed or await tab.hangs():
                self.tell("The page hung or crashed, so its tab was closed.")
                await self.shut(tab)
                tab = self._current
        if tab is None:
            tab = await self.new_tab()
        if not dialog and (sentence := tab.dialogs.describe()) is not None:
            raise RetryByModel(sentence, hint="Answer it with browser_handle_dialog first.")
        return tab

    async def new_tab(self) -> Tab:
        """An empty tab, which is the one used from now on."""
        if len(self.tabs) >= MAX_TABS:
            raise RetryByModel(f"There are {MAX_TABS} tabs already.", hint="Close some with browser_tabs.")
        self._ours += 1
        try:
            async with asyncio.timeout(self.patience.action):
                page = await self.context.new_page()
        except async_api.Error as error:
            self.alive = not gone(error.message)
            raise explain(error.message, "Opening a tab", self.patience.action) from None
        except TimeoutError:
            raise ToolTimeout("The browser opened no tab in time.", hint="Close it with browser_close.") from None
        finally:
            self._ours -= 1
        self._current = self._add(page)
        return self._current

    def find(self, index: int) -> Tab:
        if not 0 <= index < len(self.tabs):
            raise RetryByModel(f"There is no tab {index}.", hint="browser_tabs with action list shows them.")
        return self.tabs[index]

    def select(self, index: int) -> Tab:
        self._current = self.find(index)
        return self._current

    @property
    def current(self) -> Tab | None:
        return self._current

    async def shut(self, tab: Tab) -> None:
        """Close a tab, whatever its page thinks of it."""
        self._remove(tab)
        with contextlib.suppress(TimeoutError, async_api.Error):
            async with asyncio.timeout(self.patience.action):
                await tab.page.close()

    async def act(self, tab: Tab, doing: str, call: Coroutine[None, None, object], did: str) -> Done:
        """Do something that may open a dialog, and tell what came of it."""
        with contextlib.suppress(DialogOpened):  # the result shows it
            await tab.perform(doing, call)
        return await self.done(did, tab)

    async def done(self, did: str, tab: Tab) -> Done:
        """The result of an action, after what it set off had a moment to happen."""
        title = await tab.title()  # one question to the page and back: what the action set off is known by then
        await tab.settle()
        await self._popups()
        await self.downloads.wait(self.patience.settle)
        title = await tab.title() or title
        if self.downloads.busy:
            self.tell("A download is still running; a later result tells when it has arrived.")
        return Done(
            did=did,
            url=self.url(tab),
            title=title,
            dialog=tab.dialogs.describe(),
            news=self.news(),
        )

    def url(self, tab: Tab) -> str:
        return shown_url(tab.page.url, self._redact)

    async def close(self) -> None:
        """End the browser. Whatever does not end by itself is ended with the connection to it."""
        self.alive = False
        await self.downloads.stop()
        with contextlib.suppress(TimeoutError, async_api.Error):
            async with asyncio.timeout(5):
                await self.context.close()
        await self.gate.close()
        for task in list(self._beside):
            task.cancel()

    def _add(self, page: Page) -> Tab:
        known = next((tab for tab in self.tabs if tab.page == page), None)
        if known is not None:
            return known
        tab = Tab(page, self.patience, self._redact, self._spawn, self.tell, self._lost)
        page.on("close", lambda _page: self._gone(tab))
        page.on("download", self.downloads.begin)
        self.tabs.append(tab)
        if self._current is None:
            self._current = tab
        return tab

    def _asked(self, request: Request) -> None:
        """A page that asks for its first document before it is there is a popup about to open."""
        if not self._ours and request.is_navigation_request():
            try:
                _ = request.frame
            except async_api.Error:
                self._coming += 1
                self._arrived.clear()

    async def _popups(self) -> None:
        if self._coming:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.patience.settle):
                    await self._arrived.wait()
            self._coming = 0

    def _opened(self, page: Page) -> None:
        self._coming = max(self._coming - 1, 0)
        if not self._coming:
            self._arrived.set()
        if self._ours:
            self._add(page)
        elif len(self.tabs) >= MAX_TABS:
            self.tell("The page opened more tabs than are allowed; they were closed.")
            self._spawn(page.close())
        else:
            self._add(page)
            self.tell(f"The page opened tab {len(self.tabs) - 1}: select it with browser_tabs.")

    def _gone(self, tab: Tab) -> None:
        if tab in self.tabs:
            self._remove(tab)
            self.tell("A page closed its own tab.")

    def _remove(self, tab: Tab) -> None:
        if tab in self.tabs:
            self.tabs.remove(tab)
        tab.dialogs.forget()
        if self._current is tab:
            self._current = self.tabs[-1] if self.tabs else None

    def _ended(self, _context: BrowserContext) -> None:
        self._lost()

    def _lost(self) -> None:
        self.alive = False

    def _spawn(self, work: Coroutine[None, None, object]) -> None:
        task = asyncio.ensure_future(work)
        self._beside.add(task)
        task.add_done_callback(self._spawned)

    def _spawned(self, task: asyncio.Task[object]) -> None:
        self._beside.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.debug("beside a call: %s", type(error).__name__)
