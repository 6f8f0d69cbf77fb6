"""A browser for all tests of this folder, and a hub and a signed-in page for all of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from browser.browsing import Visit, launch, visiting
from hub.hubs import HubProcess, fresh_home
from support.scripted_model import ScriptedServer
from support.timing import seconds

expect.set_options(timeout=seconds(30) * 1000)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Not for the whole run: while the driver is there, no test has an event loop of its own."""
    with sync_playwright() as playwright:
        opened = launch(playwright)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer() as made:
        yield made


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[HubProcess]:
    """One whose provider may fail as often as a test wants."""
    home = fresh_home(tmp_path_factory.mktemp("page"))
    made = HubProcess(home, model.openai_url, LLM_BREAKER_ERRORS="1000").start()
    yield made
    made.end()


@pytest.fixture
def own_visit(browser: Browser, hub: HubProcess) -> Iterator[Visit]:
    """For a test of sign-ins, or one whose clock or script stays in the browser."""
    with visiting(browser, hub) as made:
        yield made


@pytest.fixture(scope="module")
def shared_visit(browser: Browser, hub: HubProcess) -> Iterator[Visit]:
    with visiting(browser, hub) as made:
        yield made


@pytest.fixture
def visit(shared_visit: Visit) -> Iterator[Visit]:
    """Signed in once for a file: a sign-in loads the whole page."""
    yield shared_visit
    shared_visit.forget_test()
