"""Every view is read by a screen reader, seen in light and dark, and used with keys alone and on a phone (UX-02)."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, expect

from browser.browsing import PHONE, Visit, visiting
from browser.sample_home import fill
from hub.hubs import HubProcess
from support.scripted_model import Call, Reply, Rule, ScriptedServer

VIEWS = ("chat", "inbox", "goals", "feed", "skills", "memory", "costs", "traces", "system")
SYSTEM = ("Servers", "Models", "Accounts", "Security", "Diagnosis", "Settings", "Backup", "Logs")
PARTS = (
    *("goals?tab=notes", "goals/1", "skills/1", "setup"),
    *(f"memory/{one}" for one in ("timeline", "profile", "persona", "forget")),
    *(f"system/{one.lower()}" for one in SYSTEM if one != "Settings"),
    "system/settings?search=MB",  # of every kind one
)
SERIOUS = """async () => (await axe.run({ resultTypes: ["violations"] })).violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => [one.id, one.nodes[0].html.slice(0, 200)])"""
LONG = "Donaudampfschifffahrtsgesellschaft" * 8
WIDER = """() => [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > 390)
  .map((one) => `${one.tagName}.${one.className} ${one.textContent.slice(0, 60)}`)"""
CONTROLS = "a[href], button, input, select, textarea, summary"
DIALOGS = {
    "goals": "New goal",
    "skills": "New skill",
    "costs": "Change budgets …",
    "system/accounts": "Connect a mailbox",
}


def fill_with_long_words(hub: HubProcess, model: ScriptedServer) -> None:
    delete = Call(name="filer_delete_file", arguments={"path": f"{LONG[:200]}.txt"})
    (hub.home.workspace / f"{LONG[:200]}.txt").write_text("long")
    remind = Call(name="memory_store_skill", arguments={"message": LONG[:60], "when": "tomorrow at 9"})
    model.rules(
        Rule(match="delete", results=0, reply=Reply(tool_calls=[delete])),
        Rule(match="skill", results=0, reply=Reply(tool_calls=[remind])),
        Rule(match="skill", reply=Reply(text="I will.")),
        Rule(reply=Reply(text=f"# {LONG}\n\n{LONG} `{LONG}`\n\n| {LONG} | b |\n|---|---|\n| {LONG} | {LONG} |")),
    )
    for text in (f"{LONG} question", f"skill {LONG}", f"May I delete {LONG}"):
        hub.say(text, channel="page")
    hub.http.post("/goals", json={"title": LONG[:120], "description": LONG, "learnings": [LONG], "tools": []})
    hub.http.post("/notes", json={"title": LONG[:150], "content": LONG})
    fact = {"name": "memory_store_fact", "arguments": {"fact": LONG, "category": "background"}}
    hub.http.post("/tools/call", json=fact)
    hub.http.post("/agents/annabelle/pause", json={"reason": LONG[:200]})


def looking(browser: Browser, hub: HubProcess, **options: object) -> Generator[Visit]:
    """The scanner is put into the page from outside, which the page's own policy would refuse."""
    with visiting(browser, hub, bypass_csp=True, **options) as visit:
        visit.sign_in()
        visit.page.evaluate(AXE_SCRIPT)
        yield visit


@pytest.fixture(scope="module")
def filled(hub: HubProcess, model: ScriptedServer) -> HubProcess:
    fill(hub, model)
    fill_with_long_words(hub, model)
    return hub


@pytest.fixture(scope="module")
def on_desktop(browser: Browser, filled: HubProcess) -> Iterator[Visit]:
    yield from looking(browser, filled, color_scheme="light")


@pytest.fixture(scope="module")
def on_phone(browser: Browser, filled: HubProcess) -> Iterator[Visit]:
    yield from looking(browser, filled, color_scheme="dark", viewport=PHONE, has_touch=True)


@pytest.fixture(params=["desktop", "phone"])
def looked_at(on_desktop: Visit, on_phone: Visit, request: pytest.FixtureRequest) -> Visit:
    return on_desktop if request.param == "desktop" else on_phone


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
def test_everything_on_a_view_is_reached_by_the_keyboard_alone(on_desktop: Visit) -> None:
    """Tab passes over every control that can be seen, in each view, and comes round again."""
    for view in VIEWS:
        page = on_desktop.go(view)
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


def open_view(visit: Visit, title: str) -> None:
    """By the menu, which closes behind it."""
    page = visit.page
    menu = page.get_by_role("button", name="Menu")
    menu.tap()
    expect(menu).to_have_attribute("aria-expanded", "true")
    page.get_by_role("navigation", name="Views").get_by_role("link", name=title).tap()
    expect(page.get_by_role("navigation", name="Views")).to_be_hidden()
    expect(page.locator(f".view.{title.lower()} h1").first).to_be_attached()
    expect(page.get_by_text("Loading …").filter(visible=True)).to_have_count(0)


@pytest.mark.req("UX-02")
@pytest.mark.parametrize("title", [one.capitalize() for one in VIEWS])
def test_no_view_is_wider_than_a_phone_and_each_is_stopped_and_resumed(on_phone: Visit, title: str) -> None:
    page = on_phone.page
    open_view(on_phone, title)
    page.locator("main summary").evaluate_all("(all) => all.forEach((one) => { one.parentElement.open = true })")
    expect(page.get_by_text("Loading …").filter(visible=True)).to_have_count(0)
    width = page.evaluate("document.scrollingElement.scrollWidth")
    assert width <= PHONE["width"], page.evaluate(WIDER)
    page.get_by_role("button", name="Stop everything").tap()
    expect(page.get_by_role("button", name="Resume", exact=True)).to_be_visible()
    assert on_phone.hub.http.get("/sessions/current").json()["stopped"] is True
    assert page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
    page.get_by_role("button", name="Resume", exact=True).tap()
    expect(page.get_by_role("button", name="Stop everything")).to_be_visible()
    assert on_phone.hub.http.get("/sessions/current").json()["stopped"] is False


@pytest.mark.req("UX-02")
@pytest.mark.parametrize("part", SYSTEM)
def test_no_part_of_the_system_is_wider_than_a_phone(on_phone: Visit, part: str) -> None:
    page = on_phone.page
    open_view(on_phone, "System")
    page.get_by_role("navigation", name="Parts of the system").get_by_role("link", name=part).tap()
    expect(page.get_by_role("heading", name=part).first).to_be_visible()
    expect(page.get_by_text("Loading …").filter(visible=True)).to_have_count(0)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"], page.evaluate(WIDER)
    assert (on_phone.foreign, on_phone.errors) == ([], [])


@pytest.mark.req("UX-02")
def test_a_message_is_written_sent_and_its_call_opened_without_a_mouse(
    on_desktop: Visit, model: ScriptedServer
) -> None:
    model.rules()
    on_desktop.hub.http.post("/agents/annabelle/resume")
    page = on_desktop.go("chat")
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
