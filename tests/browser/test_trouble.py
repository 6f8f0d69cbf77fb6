"""A browser that blocks or misses something, a link that was used before, and a hub that is away (UX-02)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from annabelle.core.messages import now
from annabelle.servers.web.config import find_browser
from browser.browsing import Visit, visiting
from hub.hubs import HubProcess, fresh_home
from support.network import free_port
from support.scripted_model import Reply, Rule, ScriptedServer

VIEWS = ("Chat", "Inbox", "Goals", "Feed", "Skills", "Memory", "Costs", "Traces", "System")


def make_link(hub: HubProcess) -> str:
    return f"{hub.url}{hub.http.post('/sessions/links').json()['path']}"


def open_view(page: Page, title: str) -> None:
    page.get_by_role("navigation", name="Views").get_by_role("link", name=title).click()


@pytest.mark.req("UX-02")
def test_a_browser_that_blocks_cookies_is_told_what_to_do_and_the_link_is_not_spent(
    browser: Browser, hub: HubProcess, tmp_path: Path
) -> None:
    """As the browser's own settings do it, which blocks its storage as well."""
    (tmp_path / "Default").mkdir()
    blocked = {"profile": {"default_content_setting_values": {"cookies": 2}}}
    (tmp_path / "Default" / "Preferences").write_text(json.dumps(blocked))
    link = make_link(hub)
    context = browser.browser_type.launch_persistent_context(
        tmp_path, executable_path=find_browser(None), args=["--no-sandbox"]
    )
    try:
        visit = Visit(hub, context)
        visit.page.goto(link)
        expect(visit.page.get_by_role("alert")).to_have_text(
            "This browser blocks cookies and site data, which keep you signed in here."
            " Allow them for this address, then load this page again."
        )
        assert (visit.foreign, visit.errors) == ([], [])
    finally:
        context.close()
    with visiting(browser, hub) as allowed:
        allowed.page.goto(link)
        expect(allowed.page.get_by_role("navigation", name="Views")).to_be_visible()


@pytest.mark.req("UX-02")
def test_cookies_that_are_dropped_on_their_way_are_noticed(own_visit: Visit, hub: HubProcess) -> None:
    """The browser says that it takes cookies; something between it and the hub does not."""
    own_visit.context.route("**/sessions/current", lambda route: route.continue_(headers={"cookie": ""}))
    own_visit.page.goto(make_link(hub))
    expect(own_visit.page.get_by_role("alert")).to_contain_text("blocks cookies")
    expect(own_visit.page.get_by_role("alert")).to_contain_text("open a new link")
    assert own_visit.page.evaluate("localStorage.getItem('annabelle-key')") is None


@pytest.mark.req("UX-02")
def test_a_browser_without_storage_is_told_what_to_do(own_visit: Visit, hub: HubProcess) -> None:
    refuse = "get() { throw new DOMException('The operation is insecure.', 'SecurityError') }"
    own_visit.context.add_init_script(f"Object.defineProperty(window, 'localStorage', {{ {refuse} }})")
    own_visit.page.goto(make_link(hub))
    expect(own_visit.page.get_by_role("alert")).to_contain_text("Allow them for this address")
    expect(own_visit.page.get_by_text("annabelle open", exact=True)).to_be_visible()
    assert (own_visit.foreign, own_visit.errors) == ([], [])


@pytest.mark.req("UX-02")
def test_a_link_that_was_used_before_signs_nobody_out(own_visit: Visit, hub: HubProcess) -> None:
    link = make_link(hub)
    for _ in range(2):
        own_visit.page.goto(link)
        expect(own_visit.page.get_by_role("navigation", name="Views")).to_be_visible()
        own_visit.page.goto("about:blank")


@pytest.mark.req("UX-02")
def test_a_browser_whose_clock_is_wrong_shows_the_right_times(own_visit: Visit, model: ScriptedServer) -> None:
    own_visit.hub.say("remind me in 25 hours to stretch")
    own_visit.context.clock.install()
    for days in (1, -3000):
        own_visit.context.clock.set_system_time(now() + timedelta(days=days))
        page = own_visit.sign_in()
        page.reload()
        expect_right_times(page, model, days)
    assert (own_visit.foreign, own_visit.errors) == ([], [])


def expect_right_times(page: Page, model: ScriptedServer, days: int) -> None:
    asked, answer = f"What time is it by a clock off by {days} days?", f"{days} days off."
    model.rules(Rule(match="What time", reply=Reply(text=answer)))
    page.get_by_label("Your message").fill(asked)
    page.keyboard.press("Enter")
    assert abs(page.evaluate("Date.now()") / 1000 - now().timestamp() - days * 24 * 3600) < 3600
    own = page.locator(".message.own").filter(has_text=asked).locator("time")
    shown = datetime.fromisoformat(own.get_attribute("datetime") or "")
    assert abs(now() - shown) < timedelta(hours=1)
    expect(page.locator(".message.agent").get_by_text(answer, exact=True)).to_be_visible()
    for title in VIEWS:
        open_view(page, title)
        expect(page.locator(f".view.{title.lower()} h1").first).to_be_attached()
        expect(page.locator("main [role=alert]")).to_have_count(0)
        if title == "Skills":
            expect(page.locator(".week > li")).to_have_count(7)
            expect(page.locator(".week > li").filter(has_text="stretch")).to_have_count(1)
        elif title == "Memory":
            page.get_by_role("link", name="Timeline").click()
            expect(page.get_by_text(asked).first).to_be_visible()
        elif title == "Costs":
            drawn = page.locator(".plot rect title", has_text=f"{now():%Y-%m-%d}: $")
            expect(drawn).to_have_count(1)
            assert not (drawn.text_content() or "").endswith("$0.00")


@pytest.fixture
def own_hub(tmp_path: Path, model: ScriptedServer) -> Iterator[HubProcess]:
    """One that can be stopped, and has the same address when it is back."""
    made = HubProcess(fresh_home(tmp_path), model.openai_url, ANNABELLE_PORT=str(free_port())).start()
    yield made
    made.end()


@pytest.mark.req("UX-02", "POL-03")
def test_a_question_answered_in_one_tab_is_closed_in_the_chat_of_another(visit: Visit, hub: HubProcess) -> None:
    (hub.home.workspace / "both.txt").write_text("both")
    page = visit.sign_in()
    delete = '{"calls": [{"name": "filer_delete_file", "arguments": {"path": "both.txt"}}], "say": "Deleted."}'
    page.get_by_label("Your message").fill(f"Look. {delete}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Deny")).to_be_visible()
    other = visit.context.new_page()
    other.goto(f"{hub.url}/page/#/inbox")
    other.get_by_role("button", name="Deny").click()
    expect(page.locator(".message").get_by_text("denied", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Deny")).to_have_count(0)
    expect(page.locator(".live")).to_have_count(0)
    assert (hub.home.workspace / "both.txt").exists()


@pytest.mark.req("UX-02", "THR-04")
def test_a_page_whose_hub_was_away_for_long_goes_on_by_itself(
    browser: Browser, own_hub: HubProcess, model: ScriptedServer
) -> None:
    with visiting(browser, own_hub) as visit:
        page = visit.sign_in()
        open_view(page, "Inbox")
        expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
        visit.context.clock.install()
        own_hub.stop()
        expect(page.get_by_text("Annabelle cannot be reached. Trying again …")).to_be_visible()
        page.evaluate("window.stays = true")
        page.clock.fast_forward("10:00:00")
        for title in ("Goals", "System", "Chat", "Skills"):
            open_view(page, title)
            expect(page.get_by_role("alert")).to_be_visible()
        own_hub.start()
        expect(page.locator("#connection")).to_be_hidden()
        expect(page.locator(".week")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        for title in VIEWS:
            open_view(page, title)
            expect(page.locator(f".view.{title.lower()} h1").first).to_be_attached()
            expect(page.locator("main [role=alert]")).to_have_count(0)
        open_view(page, "Chat")
        model.rules(Rule(match="back", reply=Reply(text="I am back.")))
        page.get_by_label("Your message").fill("Are you back?")
        page.keyboard.press("Enter")
        expect(page.locator(".message.agent:not(.live)").get_by_text("I am back.")).to_be_visible()
        assert page.evaluate("window.stays"), "nothing was loaded again"
        assert visit.foreign == []


@pytest.mark.req("UX-02")
def test_a_link_opened_while_the_hub_is_away_signs_in_when_it_is_back(own_visit: Visit, hub: HubProcess) -> None:
    away, page = True, own_visit.page
    own_visit.context.route("**/sessions", lambda route: route.abort() if away else route.continue_())
    page.goto(make_link(hub))
    expect(page.locator("main").get_by_role("status")).to_contain_text("Annabelle cannot be reached.")
    away = False
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()
