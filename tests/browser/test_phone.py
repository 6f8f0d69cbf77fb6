"""A phone's window: nothing is wider than it, and the menu and the stop are at hand in every view (UX-02)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from browser.browsing import PHONE, Visit, visiting
from browser.sample_home import fill
from hub.hubs import HubProcess
from support.scripted_model import Call, Reply, Rule, ScriptedServer

LONG = "Donaudampfschifffahrtsgesellschaft" * 8
VIEWS = ("Chat", "Inbox", "Goals", "Feed", "Skills", "Memory", "Costs", "Traces", "System")
WIDER = """() => [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > 390)
  .map((one) => `${one.tagName}.${one.className} ${one.textContent.slice(0, 60)}`)"""


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


@pytest.fixture(scope="module")
def on_phone(browser: Browser, hub: HubProcess, model: ScriptedServer) -> Iterator[Visit]:
    fill(hub, model)
    fill_with_long_words(hub, model)
    with visiting(browser, hub, viewport=PHONE, has_touch=True) as visit:
        visit.sign_in()
        yield visit


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
@pytest.mark.parametrize("title", VIEWS)
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
@pytest.mark.parametrize(
    "part", ["Servers", "Models", "Accounts", "Security", "Diagnosis", "Settings", "Backup", "Logs"]
)
def test_no_part_of_the_system_is_wider_than_a_phone(on_phone: Visit, part: str) -> None:
    page = on_phone.page
    open_view(on_phone, "System")
    page.get_by_role("navigation", name="Parts of the system").get_by_role("link", name=part).tap()
    expect(page.get_by_role("heading", name=part).first).to_be_visible()
    expect(page.get_by_text("Loading …").filter(visible=True)).to_have_count(0)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"], page.evaluate(WIDER)
    assert (on_phone.foreign, on_phone.errors) == ([], [])
