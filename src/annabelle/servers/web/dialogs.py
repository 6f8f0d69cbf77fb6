"""Dialogs of a page: each is held until somebody answers it, and for so long the page stands still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING

from annabelle.core.errors import RetryByModel
from annabelle.servers.kit import deferred_module
from annabelle.servers.web.wording import shown_line

if TYPE_CHECKING:
    from playwright import async_api
    from playwright.async_api import Dialog
else:
    async_api = deferred_module("playwright.async_api")

MAX_HELD = 10
MAX_DIALOGS = 60
"""A page that opens more does nothing else; its tab is closed."""

Spawn = Callable[[Coroutine[None, None, object]], None]


class Dialogs:
    """What one tab asks. The first few are held; a page that keeps asking is dismissed, and in the end given up."""

    def __init__(self, seconds: float, spawn: Spawn, news: Callable[[str], None], give_up: Callable[[], None]) -> None:
        self._seconds, self._spawn, self._news, self._give_up = seconds, spawn, news, give_up
        self._held: list[Dialog] = []
        self._seen = 0
        self.opened = asyncio.Event()

    def renew(self) -> None:
        """Another page is in the tab; it has asked nothing yet."""
        self._seen = 0

    def add(self, dialog: Dialog) -> None:
        self._seen += 1
        if self._seen > MAX_DIALOGS:
            if self._seen == MAX_DIALOGS + 1:
                self._give_up()
            return
        if self._seen > MAX_HELD:
            if self._seen == MAX_HELD + 1:
                self._news("The page opens one dialog after another; from here on they are dismissed.")
            self._spawn(_answer(dialog, accept=False, text=None))
            return
        self._held.append(dialog)
        self.opened.set()
        asyncio.get_running_loop().call_later(self._seconds, self._expire, dialog)

    def describe(self) -> str | None:
        """The dialog that waits, as a sentence; None when none does."""
        if not self._held:
            return None
        dialog = self._held[0]
        if dialog.type == "beforeunload":
            return "A dialog is open: the page asks whether to leave it although something may not be saved."
        return f'A dialog is open ({dialog.type}): "{shown_line(dialog.message, 500)}".'

    async def answer(self, accept: bool, text: str | None) -> str:
        """Answer the dialog that waits, and say which it was."""
        if not self._held:
            raise RetryByModel("No dialog is open.", hint="Look at the page with browser_snapshot.")
        dialog = self._held.pop(0)
        self._update()
        try:
            await _answer(dialog, accept, text if dialog.type == "prompt" else None)
        except (TimeoutError, async_api.Error):
            raise RetryByModel("The dialog was gone already.", hint="Look at the page with browser_snapshot.") from None
        return f"{'Accepted' if accept else 'Dismissed'} the {dialog.type} dialog."

    def forget(self) -> None:
        """The page is gone, and its dialogs with it."""
        self._held.clear()
        self._update()

    def _expire(self, dialog: Dialog) -> None:
        if dialog in self._held:
            self._held.remove(dialog)
            self._update()
            self._news(f"A dialog ({dialog.type}) was dismissed because nobody answered it for {self._seconds:g} s.")
            self._spawn(_answer(dialog, accept=False, text=None))

    def _update(self) -> None:
        if not self._held:
            self.opened.clear()


async def _answer(dialog: Dialog, accept: bool, text: str | None) -> None:
    async with asyncio.timeout(5):
        if accept:
            await dialog.accept(text) if text is not None else await dialog.accept()
        else:
            await dialog.dismiss()
