"""A real browser on the page of a real hub."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, Page, Playwright, ViewportSize, expect

from annabelle.servers.web.config import find_browser
from hub.hubs import HubProcess
from support.timing import seconds

PHONE: ViewportSize = {"width": 390, "height": 844}
DESKTOP: ViewportSize = {"width": 1280, "height": 900}
# The view that is left stays for a moment, and may have the same name.
LEAVE_FOR = """(hash) => { const before = location.hash; location.hash = hash;
  if (location.hash !== before) document.querySelector('.view')?.classList.add('left') }"""


def launch(playwright: Playwright) -> Browser:
    """The same engine without the windows around it costs a third less."""
    program = shutil.which("chromium-headless-shell") or find_browser(None)
    return playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])


class Visit:
    """A signed-in browser. What it asked of other machines, and what went wrong in it, is kept."""

    def __init__(self, hub: HubProcess, context: BrowserContext) -> None:
        self.hub, self.context = hub, context
        self._own = (hub.url, "blob:", "data:")  # the hub may be away later
        self.foreign: list[str] = []
        self.errors: list[str] = []
        context.set_default_timeout(seconds(20) * 1000)
        expect.set_options(timeout=seconds(20) * 1000)
        context.on("request", lambda request: self._note(request.url))
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        self.page = context.new_page()
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)

    def _note(self, url: str) -> None:
        if not url.startswith(self._own):
            self.foreign.append(url)

    def sign_in(self, token: str | None = None, *, first: bool = False) -> Page:
        """As somebody who has been through the first visit, unless it is the first. Whoever is signed in stays so."""
        if self.page.locator("header").count():
            return self.go("chat")
        if not first:
            self.context.add_init_script("try { localStorage.setItem('annabelle-set-up', 'done') } catch {}")
        headers = {"X-Annabelle-Token": token or self.hub.token}
        link = self.hub.http.post("/sessions/links", headers=headers).json()
        self.page.goto(f"{self.hub.url}{link['path']}")
        self.page.wait_for_selector("header")
        return self.page

    def go(self, view: str) -> Page:
        """To a view, and wait until it is drawn."""
        self.page.evaluate(LEAVE_FOR, f"#/{view}")
        name = view.partition("/")[0].partition("?")[0]
        self.page.wait_for_selector(f".view.{name}:not(.left) h1", state="attached")
        return self.page

    def forget_test(self) -> None:
        """Keep the session, and nothing else of what was opened, typed, routed and noted."""
        for page in self.context.pages:
            page.unroute_all(behavior="ignoreErrors")
            if page != self.page:
                page.close()
        self.page.set_viewport_size(DESKTOP)
        self.page.evaluate("sessionStorage.clear(); document.querySelectorAll('.toast').forEach((one) => one.remove())")
        self.go("inbox")  # so that the next test comes to a chat that is drawn for it
        self.foreign.clear()
        self.errors.clear()


@contextmanager
def visiting(browser: Browser, hub: HubProcess, **options: object) -> Generator[Visit]:
    context = browser.new_context(**{"viewport": DESKTOP, **options})  # type: ignore[arg-type]
    try:
        yield Visit(hub, context)
    finally:
        context.close()
