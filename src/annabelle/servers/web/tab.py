"""One tab: a page with its events and dialogs, and one action at a time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from annabelle.core.errors import AnnabelleError, RetryByModel, ToolTimeout
from annabelle.core.secrets.redactor import Redactor
from annabelle.servers.kit import deferred_module
from annabelle.servers.web.config import BrowserTimeouts
from annabelle.servers.web.page_events import NEW_SNAPSHOT, PageDialogs, PageTraffic, explain_browser_error, is_gone
from annabelle.servers.web.results import clean_line

if TYPE_CHECKING:
    from playwright import async_api
    from playwright.async_api import CDPSession, FileChooser, Frame, Locator, Page, Request
else:
    async_api = deferred_module("playwright.async_api")

_log = logging.getLogger(__name__)

T = TypeVar("T")
_REF = re.compile(r"(?:f[0-9]{1,6})?e[0-9]{1,9}")
SCHEMES = frozenset({"http", "https", "about", "blob", "chrome-error"})
"""Schemes a tab may show. `chrome-error` is the browser's error page for a site it could not open."""
_GRACE = 2.0
_GLANCE = 1.5
_CLOSE_TOLD = 0.3
_NEXT_DIALOG = 0.15
"""Seconds in which an answered page opens its next dialog, if it opens one at once."""


class BrowserTab:
    """`spawn` runs background work, `news` adds to the next result, `lost` reports that the browser has ended."""

    def __init__(
        self,
        page: Page,
        patience: BrowserTimeouts,
        redact: Redactor,
        spawn: Callable[[Coroutine[None, None, object]], None],
        news: Callable[[str], None],
        lost: Callable[[], None],
    ) -> None:
        self.page, self.timeouts = page, patience
        self._spawn, self._news, self._lost = spawn, news, lost
        self.traffic = PageTraffic(redact)
        self.dialogs = PageDialogs(patience.dialog, spawn, news, self._give_up)
        self.chooser: FileChooser | None = None
        self.crashed = False
        self._doubtful = False
        self._channel: CDPSession | None = None
        self._loading: Request | None = None
        self._pending: set[asyncio.Future[object]] = set()
        self._listen()

    def _listen(self) -> None:
        page, traffic = self.page, self.traffic
        page.on("console", traffic.add_console)
        page.on("pageerror", traffic.add_script_error)
        page.on("response", traffic.add_response)
        page.on("requestfinished", traffic.finish_request)
        page.on("request", self._on_request)
        page.on("requestfailed", self._on_request_failed)
        page.on("framenavigated", self._on_navigated)
        page.on("dialog", self.dialogs.add)
        page.on("filechooser", self._on_file_chooser)
        page.on("crash", self._on_crash)

    async def perform(self, doing: str, call: Coroutine[None, None, T], seconds: float | None = None) -> T:
        """Do one thing in the page, for a bounded time. Raises DialogOpened if a dialog blocks it.

        Interrupted work goes on in the browser, and the next call waits for it.
        """
        limit = self.timeouts.action if seconds is None else seconds
        task = asyncio.ensure_future(call)
        dialog = asyncio.ensure_future(self.dialogs.opened.wait())
        try:
            await asyncio.wait({task, dialog}, timeout=limit + _GRACE, return_when=asyncio.FIRST_COMPLETED)
        finally:
            dialog.cancel()
            if not task.done():
                self._leave_pending(task)
        if not task.done():
            if (sentence := self.dialogs.describe()) is not None:
                raise DialogOpened(sentence, hint="Answer it with browser_handle_dialog.")
            self._doubtful = True
            raise ToolTimeout(
                f"{doing} took longer than {limit:g} s.", hint="The page may hang: close its tab with browser_tabs."
            )
        try:
            return task.result()
        except async_api.Error as error:
            _log.debug("%s: %s", doing, type(error).__name__)
            if is_gone(error.message):
                await self._find_out_what_closed()
            explained = explain_browser_error(error.message, doing, limit)
            self._doubtful = self._doubtful or isinstance(explained, ToolTimeout)
            raise explained from None  # the cause contains what was typed

    async def _find_out_what_closed(self) -> None:
        """Tell a closed page, which is reported a moment later, from an ended browser or driver."""
        if not self.page.is_closed():
            await asyncio.sleep(_CLOSE_TOLD)
        if not self.page.is_closed() and not self.crashed:
            self._lost()

    async def wait_for_pending(self) -> None:
        """Wait until the work of an earlier call has ended or a dialog blocks it."""
        await self._until_dialog(list(self._pending), self.timeouts.action)

    async def after_dialog(self) -> None:
        """Let interrupted work continue to its end or to the next dialog."""
        await self.wait_for_pending()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_NEXT_DIALOG):
                await self.dialogs.opened.wait()

    async def _until_dialog(self, work: Sequence[asyncio.Future[object]], seconds: float) -> None:
        if work and not self.dialogs.opened.is_set():
            dialog = asyncio.ensure_future(self.dialogs.opened.wait())
            everything = asyncio.ensure_future(asyncio.wait(work))
            await asyncio.wait([dialog, everything], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            dialog.cancel()
            everything.cancel()

    async def is_hanging(self) -> bool:
        """Whether the page no longer responds, after something took too long."""
        if not self._doubtful or self.dialogs.opened.is_set():
            return False
        try:
            async with asyncio.timeout(_GLANCE):
                await self.page.evaluate("1")
        except TimeoutError:
            return True
        except async_api.Error:
            pass
        self._doubtful = False
        return False

    async def wait_for_load(self) -> None:
        """Wait briefly for the page that the last action began to load."""
        until = asyncio.get_running_loop().time() + self.timeouts.settle
        while self._loading is not None and not self.dialogs.opened.is_set():
            if asyncio.get_running_loop().time() > until:
                return
            await asyncio.sleep(0.05)

    async def title(self) -> str:
        """Title of the page; empty if it does not respond."""
        if self.dialogs.opened.is_set() or self.crashed:
            return ""
        try:
            async with asyncio.timeout(_GLANCE):
                return clean_line(await self.page.title(), 200)
        except (TimeoutError, async_api.Error):
            return ""

    async def find_element(self, ref: str) -> Locator:
        if _REF.fullmatch(ref) is None:
            raise RetryByModel("A ref looks like e12 or f1e3, as browser_snapshot shows it.", hint=NEW_SNAPSHOT)
        locator = self.page.locator(f"aria-ref={ref}")
        try:
            found = await self.perform("Looking the ref up", locator.count())
        except RetryByModel:
            found = 0
        if found == 0:
            raise RetryByModel(f"There is no {ref} on this page, or no longer.", hint=NEW_SNAPSHOT)
        return locator

    def stop_loading(self) -> None:
        self._loading = None
        self._spawn(self._tell_browser("Page.stopLoading"))

    async def stop_script(self) -> None:
        """Terminate a script that blocks the page."""
        with contextlib.suppress(TimeoutError, AnnabelleError, async_api.Error):
            await self._tell_browser("Runtime.terminateExecution")

    async def channel(self) -> CDPSession:
        """CDP session. It must be open before a script hangs: afterwards it cannot be opened."""
        if self._channel is None:
            self._channel = await self.perform("Asking the browser", self.page.context.new_cdp_session(self.page))
        return self._channel

    async def _tell_browser(self, method: str) -> None:
        channel = await self.channel()
        async with asyncio.timeout(_GLANCE):
            await channel.send(method)  # pyright: ignore[reportUnknownMemberType]  an untyped dict in its signature

    def _leave_pending(self, task: asyncio.Future[T]) -> None:
        pending: asyncio.Future[object] = task  # pyright: ignore[reportAssignmentType]  only its end matters
        self._pending.add(pending)
        pending.add_done_callback(self._on_pending_done)

    def _on_pending_done(self, task: asyncio.Future[object]) -> None:
        self._pending.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not warn

    def _on_request(self, request: Request) -> None:
        self.traffic.add_request(request)
        if request.is_navigation_request() and request.frame == self.page.main_frame:
            self._loading = request

    def _on_request_failed(self, request: Request) -> None:
        self.traffic.fail_request(request)
        if request == self._loading:
            self._loading = None

    def _on_navigated(self, frame: Frame) -> None:
        if frame.parent_frame is not None:
            return
        self._loading, self.chooser = None, None
        self.dialogs.reset_count()
        if urlsplit(frame.url).scheme not in SCHEMES:
            self._news("The page went to an address that is not opened here, and was left.")
            self._spawn(self.page.goto("about:blank", timeout=self.timeouts.action * 1000))

    def _on_file_chooser(self, chooser: FileChooser) -> None:
        self.chooser = chooser
        self._news("The page asks for files: give them with browser_file_upload.")

    def _on_crash(self, _page: Page) -> None:
        self.crashed = True
        self.dialogs.forget()
        self._news("The page crashed.")

    def _give_up(self) -> None:
        self._news("The page did nothing but open dialogs.")
        self.crashed = True
        self._spawn(self.page.close())


class DialogOpened(RetryByModel):
    """A dialog blocks an action, which continues when the dialog is answered."""
