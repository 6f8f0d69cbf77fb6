"""What would hurt somebody who trusts the page: tabs and texts that hang, words and answers that get lost (UX-02)."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Request, expect
from sqlalchemy import Connection, create_engine, insert, select

from annabelle.core.messages import now
from annabelle.store.database import sqlite_url
from annabelle.store.tables import threads
from browser.browsing import Visit
from browser.test_chat import add_many, say
from hub.hubs import HubProcess, wait_for
from support.scripted_model import Reply, Rule, ScriptedServer

HOSTILE = {
    "a line separator in a list": "- a\u2028b",
    "a paragraph separator in a heading": "# a\u2029b",
    "emphasis that nothing closes": "**a *b __c ~~d " * 12_000,
    "spaces in a heading": "# a" + " " * 190_000 + "b",
    "spaces under a table": "|\n-" + " " * 190_000 + "x",
    "a wide table with many rows": "|a" * 40_000 + "|\n|-|\n" + "|\n" * 40_000,
    "backticks": "`a``b```c" * 20_000,
    "brackets": "[a](" * 45_000,
    "nesting": "> - " * 45_000,
}
RENDER = """async (text) => {
  const { markdown } = await import("/page/markdown.js");
  return markdown(text).textContent.length;
}"""


def add_threads(conn: Connection, thread_id: str, count: int) -> None:
    """Newer conversations of the same person."""
    first = conn.execute(select(threads).where(threads.c.id == thread_id)).mappings().one()
    newer = [{"id": f"thr_{number:026}", "chat_id": f"later-{number}"} for number in range(1, count + 1)]
    conn.execute(insert(threads), [{**first, **one, "updated_at": now()} for one in newer])


@pytest.fixture(scope="module")
def rendering(shared_visit: Visit) -> Page:
    return shared_visit.sign_in()


@pytest.mark.req("UX-02")
@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_makes_the_page_hang(rendering: Page, name: str) -> None:
    assert rendering.evaluate(RENDER, HOSTILE[name]) > 0  # a page that hangs ends with the test's time


@pytest.mark.req("UX-02")
def test_seven_tabs_all_work_and_follow_what_happens(own_visit: Visit, model: ScriptedServer) -> None:
    model.rules(
        Rule(match="Hello", reply=Reply(text="Good morning.")), Rule(match="Once more", reply=Reply(text="Yes?"))
    )
    """Streams of six would take all connections that a browser opens to one address."""
    page = own_visit.sign_in()
    say(page, "Hello to all tabs")
    expect(page.locator(".message.agent:not(.live)").get_by_text("Good morning.").last).to_be_visible()
    tabs = [own_visit.context.new_page() for _ in range(6)]
    for tab in tabs:
        tab.goto(f"{own_visit.hub.url}/page/#/chat")
        expect(tab.locator(".message.agent:not(.live)").get_by_text("Good morning.").last).to_be_visible()
    say(tabs[-1], "Once more")
    for tab in (page, *tabs):
        expect(tab.locator(".message.agent:not(.live)").get_by_text("Yes?")).to_be_visible()
    page.close()  # the one that read for all
    say(tabs[0], "Hello again")
    for tab in tabs:
        expect(tab.locator(".message.own").get_by_text("Hello again")).to_be_visible()
        expect(tab.locator(".message.agent:not(.live)").get_by_text("Good morning.")).to_have_count(2)
    assert (own_visit.foreign, own_visit.errors) == ([], [])


@pytest.mark.req("UX-02")
def test_what_was_typed_outlives_a_look_at_another_view_a_reload_and_a_failure(visit: Visit) -> None:
    page = visit.sign_in()
    words = page.get_by_label("Your message")
    words.fill("Dear Ada, about the money")
    visit.go("inbox")
    visit.go("chat")
    expect(words).to_have_value("Dear Ada, about the money")
    page.reload()
    expect(words).to_have_value("Dear Ada, about the money")
    page.route("**/message", lambda route: route.abort())
    words.press("Enter")
    expect(page.locator(".toast")).to_contain_text("cannot be reached")
    expect(words).to_have_value("Dear Ada, about the money")
    expect(page.locator("#connection")).to_be_hidden()  # all but this request comes through
    page.unroute("**/message")
    words.press("Enter")
    expect(page.locator(".message.own").get_by_text("Dear Ada")).to_be_visible()
    page.reload()
    expect(words).to_have_value("")


@pytest.mark.req("UX-02", "THR-01")
def test_an_address_leads_to_the_conversation_it_names_or_to_none(visit: Visit, hub: HubProcess) -> None:
    old = hub.say("The old one", channel="page", chatId="old")["threadId"]
    with create_engine(sqlite_url(hub.home.database_file)).begin() as conn:
        add_threads(conn, str(old), 201)
    page = visit.sign_in()
    visit.go(f"chat/{old}")
    expect(page.locator(".heading h2")).to_have_text("The old one")
    page.evaluate("location.hash = '#/chat/thr_00000000000000000000000000'")
    expect(page.get_by_role("alert")).to_contain_text("thread")
    expect(page.get_by_label("Your message")).to_have_count(0)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for end in ("..%2F..%2Fsettings", "%2e%2e%2Fsettings", "%252e%252e%252fsettings", "..", "%E0%A4%A"):
        for view in ("chat", "goals", "traces", "skills"):
            visit.go(f"{view}/{end}")
    assert not [url for url in asked if "settings" in url]


@pytest.mark.req("UX-02")
def test_a_link_that_is_pasted_into_an_open_page_signs_in(own_visit: Visit, hub: HubProcess) -> None:
    own_visit.page.goto(f"{hub.url}/page/")
    expect(own_visit.page.get_by_text("annabelle open", exact=True)).to_be_visible()
    own_visit.page.goto(
        f"{hub.url}{hub.http.post('/sessions/links').json()['path']}"
    )  # only the end of the address differs
    expect(own_visit.page.get_by_role("navigation", name="Views")).to_be_visible()
    assert "link=" not in own_visit.page.url


@pytest.mark.req("UX-02", "POL-03")
def test_a_new_question_moves_no_other_and_keeps_a_change_that_is_being_written(visit: Visit, hub: HubProcess) -> None:
    ask = 'Look. {"calls": [{"name": "filer_delete_file", "arguments": {"path": "%s.txt"}}], "say": "Gone."}'
    for name in ("first", "second"):
        (hub.home.workspace / f"{name}.txt").write_text(name)
    page = visit.sign_in()
    visit.go("inbox")
    hub.say(ask % "first", wait=0, channel="page", chatId="first")
    cards = page.locator(".question")
    expect(cards).to_have_count(1)
    page.get_by_role("button", name="Change …").click()
    page.get_by_label("A word to the agent (optional)").fill("Careful.")
    place = cards.first.bounding_box()
    hub.say(ask % "second", wait=0, channel="page", chatId="second")
    expect(cards).to_have_count(2)
    expect(cards.last).to_contain_text("second.txt")
    assert cards.first.bounding_box() == place
    expect(page.get_by_label("A word to the agent (optional)")).to_have_value("Careful.")
    expect(page.get_by_label("A word to the agent (optional)")).to_be_focused()
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "THR-04")
def test_much_that_was_said_while_the_machine_slept_is_all_shown(own_visit: Visit, hub: HubProcess) -> None:
    page = own_visit.sign_in()
    say(page, "/help")
    expect(page.locator(".message.own").get_by_text("/help")).to_have_count(1)
    own_visit.context.set_offline(offline=True)
    for number in range(9):
        hub.say("/help", channel="page", chatId="main", externalId=f"asleep-{number}")
    said = hub.say("/help", channel="page", chatId="main")
    with create_engine(sqlite_url(hub.home.database_file)).begin() as conn:
        add_many(conn, str(said["threadId"]), 60)
    own_visit.context.set_offline(offline=False)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    say(page, "/help")
    expect(page.locator(".message.own").get_by_text("/help")).to_have_count(12)
    expect(page.locator(".message.own").get_by_text(re.compile(r"^Number \d+\.$"))).to_have_count(60)
    order = page.locator(".message").evaluate_all("(all) => all.map((one) => Number(one.dataset.position))")
    assert order == sorted(order)


@pytest.mark.req("UX-02")
def test_switching_views_leaves_no_stream_open(visit: Visit) -> None:
    """All views read the stream of the page, which was there before them."""
    page = visit.sign_in()
    is_open: set[Request] = set()
    page.on("request", lambda one: is_open.add(one))
    page.on("requestfinished", lambda one: is_open.discard(one))
    page.on("requestfailed", lambda one: is_open.discard(one))
    for view in ("inbox", "goals", "feed", "skills", "memory", "costs", "traces", "system", "chat") * 2:
        visit.go(view)
    wait_for(lambda: page.evaluate("1") and not is_open, "an end of what was opened")


@pytest.mark.req("UX-02")
def test_a_busy_hour_leaves_requests_for_its_person(own_visit: Visit, hub: HubProcess) -> None:
    hub.http.post("/goals", json={"title": "Busy"})
    page = own_visit.sign_in()
    own_visit.go("goals")
    page.clock.install()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for _ in range(100):
        page.evaluate("window.dispatchEvent(new CustomEvent('annabelle', { detail: { type: 'tool_start' } }))")
        page.clock.run_for(100)
    page.clock.run_for(5000)
    refreshed = sum("/goals" in url for url in asked)
    assert 1 <= refreshed <= 8, asked


@pytest.mark.req("UX-02")
def test_a_connection_that_died_in_silence_is_made_again(own_visit: Visit) -> None:
    page = own_visit.sign_in()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.install()
    page.reload()
    page.wait_for_selector("header")
    wait_for(lambda: page.evaluate("1") and [url for url in asked if url.endswith("/events")], "a stream")
    asked.clear()
    page.clock.fast_forward(70_000)
    page.clock.run_for(10_000)
    wait_for(lambda: page.evaluate("1") and [url for url in asked if url.endswith("/events")], "another stream")


@pytest.mark.req("UX-02")
def test_a_tab_that_was_left_open_changes_only_what_is_changed_in_it(visit: Visit, hub: HubProcess) -> None:
    hub.http.post("/costs/budget", json={"dayUsd": 50, "monthUsd": 500})
    goal = hub.http.post("/goals", json={"title": "Old title", "description": "Old"}).json()["goalId"]
    page = visit.sign_in()
    visit.go("costs")
    page.get_by_role("button", name="Change budgets …").click()
    hub.http.post("/costs/budget", json={"dayUsd": 2})  # somewhere else
    page.get_by_label("The most a month may cost").fill("no money")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("dialog")).to_contain_text("no amount of money")
    page.get_by_label("The most a month may cost").fill("100")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toast").get_by_text("The budgets are changed.")).to_be_visible()
    budgets = hub.http.get("/costs/budget").json()
    assert (budgets["day"]["capUsd"], budgets["month"]["capUsd"]) == (2, 100)
    visit.go(f"goals/{goal}")
    page.get_by_role("button", name="Edit", exact=True).click()
    hub.http.post(f"/goals/{goal}/update", json={"description": "New"})
    page.get_by_label("Title").fill("New title")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("h1")).to_have_text("New title")
    found = hub.http.get(f"/goals/{goal}").json()
    assert (found["title"], found["description"]) == ("New title", "New")
    hub.http.post("/costs/budget", json={"dayUsd": None, "monthUsd": None})


@pytest.mark.req("UX-02")
def test_a_secret_is_not_lost_by_a_press_of_save(visit: Visit, hub: HubProcess) -> None:
    hub.http.post("/settings", json={"name": "GROQ_API_KEY", "value": "gsk-0123456789abcdef"})
    page = visit.sign_in()
    visit.go("system/settings?search=GROQ_API_KEY")
    page.locator("[data-setting=GROQ_API_KEY] summary").click()
    page.get_by_role("button", name="Save GROQ_API_KEY").click()
    expect(page.get_by_text("Nothing was typed, so nothing is changed.")).to_be_visible()
    assert "gsk-0123456789abcdef" in hub.home.settings_file.read_text()
