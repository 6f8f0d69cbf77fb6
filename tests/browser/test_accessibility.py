"""Every view can be read by a screen reader, seen in light and dark, on a desktop and a phone (UX-02)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, expect

from browser.browsing import DESKTOP, PHONE, Visit, visiting
from browser.sample_home import fill
from hub.hubs import HubProcess
from support.scripted_model import ScriptedServer

VIEWS = ("chat", "inbox", "goals", "feed", "skills", "memory", "costs", "traces", "system")
SYSTEM = ("servers", "models", "accounts", "security", "diagnosis", "settings", "backup", "logs")
PARTS = (
    *("goals?tab=notes", "goals/1", "skills/1", "setup"),
    *(f"memory/{one}" for one in ("timeline", "profile", "persona", "forget")),
    *(f"system/{one}" for one in SYSTEM),
)
SERIOUS = """async () => (await axe.run({ resultTypes: ["violations"] })).violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => [one.id, one.nodes[0].html.slice(0, 200)])"""
CONTROLS = "a[href], button, input, select, textarea, summary"
DIALOGS = {
    "goals": "New goal",
    "skills": "New skill",
    "costs": "Change budgets …",
    "system/accounts": "Connect a mailbox",
}


@pytest.fixture(scope="module")
def filled(hub: HubProcess, model: ScriptedServer) -> HubProcess:
    fill(hub, model)
    return hub


@pytest.fixture(scope="module", params=[("desktop", "light"), ("phone", "dark")], ids=lambda one: "-".join(one))
def looked_at(browser: Browser, filled: HubProcess, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """The scanner is put into the page from outside, which the page's own policy would refuse."""
    size, scheme = request.param
    viewport = DESKTOP if size == "desktop" else PHONE
    with visiting(browser, filled, viewport=viewport, color_scheme=scheme, bypass_csp=True) as visit:
        visit.sign_in()
        visit.page.evaluate(AXE_SCRIPT)
        yield visit


def expect_nothing_serious(visit: Visit) -> None:
    page = visit.page
    expect(page.get_by_text("Loading …").filter(visible=True)).to_have_count(0)
    assert page.evaluate(SERIOUS) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1")
    assert visit.foreign == []


@pytest.mark.req("UX-02")
@pytest.mark.parametrize("view", [*VIEWS, *PARTS])
def test_a_scanner_finds_nothing_serious_on_a_view_and_it_fits_the_window(looked_at: Visit, view: str) -> None:
    page = looked_at.go(view)
    expect(page.get_by_role("alert")).to_have_count(0)
    page.locator("main summary").evaluate_all("(all) => all.forEach((one) => { one.parentElement.open = true })")
    expect_nothing_serious(looked_at)


@pytest.mark.req("UX-02", "TRC-04")
def test_a_scanner_finds_nothing_serious_in_a_trace(looked_at: Visit) -> None:
    turns = looked_at.hub.http.get("/traces").json()["turns"]
    page = looked_at.go(f"traces/{turns[0]['traceId']}")
    page.locator("main summary").evaluate_all("(all) => all.forEach((one) => { one.parentElement.open = true })")
    expect_nothing_serious(looked_at)


@pytest.mark.req("UX-02")
@pytest.mark.parametrize("view", DIALOGS)
def test_a_scanner_finds_nothing_serious_in_a_dialog(looked_at: Visit, view: str) -> None:
    page = looked_at.go(view)
    page.get_by_role("button", name=DIALOGS[view], exact=True).click()
    expect(page.get_by_role("dialog")).to_be_visible()
    expect_nothing_serious(looked_at)
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()


@pytest.mark.req("UX-02")
@pytest.mark.usefixtures("filled")
def test_everything_on_a_view_is_reached_by_the_keyboard_alone(visit: Visit) -> None:
    """Tab passes over every control that can be seen, in each view, and comes round again."""
    page = visit.sign_in()
    for view in VIEWS:
        visit.go(view)
        expect(page.get_by_text("Loading …").filter(visible=True)).to_have_count(0)
        wanted = page.evaluate(
            """(controls) => { const seen = window.seen = new Set(); document.activeElement.blur();
              document.addEventListener('focusin', ({ target }) => target.matches(controls) && seen.add(target));
              const all = [...document.querySelectorAll(controls)];
              return all.filter((one) => !one.disabled && one.checkVisibility() && one.tabIndex >= 0).length }""",
            CONTROLS,
        )
        reached = 0
        for pressed in range(1, wanted * 2 + 21):
            page.keyboard.press("Tab")
            if pressed >= wanted and (reached := page.evaluate("window.seen.size")) >= wanted:
                break
        assert reached >= wanted, view


@pytest.mark.req("UX-02")
def test_a_message_is_written_sent_and_its_call_opened_without_a_mouse(visit: Visit) -> None:
    page = visit.sign_in()
    page.get_by_label("Your message").focus()
    page.keyboard.type('Grants? {"calls": [{"name": "filer_list_grants", "arguments": {}}], "say": "Seen."}')
    page.keyboard.press("Enter")
    expect(page.locator(".message.agent:not(.live)").get_by_text("Seen.").last).to_be_visible()
    cell = page.locator(".tool summary").last
    cell.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".tool[open] h4").last).to_have_text("filer_list_grants")
    page.keyboard.press("Alt+2")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
