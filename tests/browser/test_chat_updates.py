"""What is said, sent and answered while the chat is open is shown once and not lost (UX-02)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect
from sqlalchemy import create_engine

from annabelle.store.database import sqlite_url
from browser.browsing import Visit
from browser.test_chat import add_many, say
from hub.hubs import HubProcess, wait_for
from support.scripted_model import Reply, Rule, ScriptedServer

NO_TLS = "delete Crypto.prototype.randomUUID; delete Navigator.prototype.locks;"


def own_words(page: Page, text: str) -> int:
    return page.locator(".message.own").get_by_text(text, exact=True).count()


@pytest.mark.req("UX-02", "THR-05")
def test_an_error_that_is_put_aside_leaves_no_turn_at_work_in_any_tab(visit: Visit, model: ScriptedServer) -> None:
    model.rules(Rule(match="broken", reply=Reply.failing(500, "out of order")))
    page = visit.sign_in()
    say(page, "a broken thing")
    expect(page.locator(".message.error")).to_be_visible()
    other = visit.context.new_page()
    other.goto(page.url)
    expect(other.get_by_role("button", name="Dismiss")).to_be_visible()
    page.get_by_role("button", name="Dismiss").click()
    for one in (page, other):
        expect(one.get_by_text("Dismissed.")).to_be_visible()
    say(page, "/help")
    for one in (page, other):
        expect(one.locator(".message.own").get_by_text("/help", exact=True)).to_be_visible()
        expect(one.locator(".live")).to_have_count(0)
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "THR-04")
def test_what_is_said_before_the_stream_begins_is_shown(own_visit: Visit, hub: HubProcess) -> None:
    hub.say("/help", channel="page", chatId="main")
    begun: list[Route] = []
    own_visit.context.route("**/events", lambda route: route.continue_() if begun else begun.append(route))
    page = own_visit.sign_in()
    expect(page.locator(".message.own").get_by_text("/help", exact=True).last).to_be_visible()
    hub.say("/version", channel="page", chatId="main")
    begun[0].continue_()
    expect(page.locator(".message.own").get_by_text("/version", exact=True)).to_be_visible()


@pytest.mark.req("UX-02")
def test_under_a_name_without_tls_words_are_sent_too(own_visit: Visit, model: ScriptedServer) -> None:
    """There a browser has neither ids nor locks to offer."""
    model.rules(Rule(match="plainly", reply=Reply(text="I hear you.")))
    own_visit.context.add_init_script(NO_TLS)
    page = own_visit.sign_in()
    say(page, "spoken plainly")
    expect(page.locator(".message.agent:not(.live)").get_by_text("I hear you.")).to_be_visible()
    assert (own_visit.foreign, own_visit.errors) == ([], [])


@pytest.mark.req("UX-02", "THR-01")
def test_from_a_place_in_the_past_one_reads_on_to_the_end(visit: Visit, hub: HubProcess) -> None:
    thread = hub.say("first of all", channel="page", chatId="past")["threadId"]
    with create_engine(sqlite_url(hub.home.database_file)).begin() as conn:
        add_many(conn, str(thread), 300)
    page = visit.sign_in()
    page.get_by_label("Search what was said").fill("Number")
    page.get_by_role("button", name="Search further back").click()
    expect(page.locator(".threads a").get_by_text("Number 255.", exact=True)).to_be_visible()
    page.get_by_label("Search what was said").fill("pelican")
    page.locator(".threads a").get_by_text("pelican").click()
    expect(page.locator(".message").get_by_text("A pelican.")).to_be_visible()
    expect(page.get_by_text("Number 300.", exact=True)).to_have_count(0)
    wait_for(lambda: _scroll_to_end(page) and own_words(page, "Number 300.") == 1, "the end of the conversation")
    shown = page.locator(".message").evaluate_all("(all) => all.map((one) => Number(one.dataset.position))")
    assert shown == sorted(set(shown))
    assert own_words(page, "Number 200.") == 1


def _scroll_to_end(page: Page) -> bool:
    page.locator(".log").evaluate("(log) => { log.scrollTop = log.scrollHeight }")
    return True


@pytest.mark.req("UX-02", "THR-01")
def test_words_that_are_said_from_a_place_in_the_past_lead_to_the_end(
    visit: Visit, hub: HubProcess, model: ScriptedServer
) -> None:
    model.rules(Rule(match="what now", reply=Reply(text="This is now.")))
    thread = hub.say("first of all", channel="page", chatId="far")["threadId"]
    with create_engine(sqlite_url(hub.home.database_file)).begin() as conn:
        add_many(conn, str(thread), 300)
    first = hub.http.get(f"/threads/{thread}/messages").json()["messages"][0]["position"]
    page = visit.sign_in()
    visit.go(f"chat/{thread}?at={first}")
    expect(page.get_by_text("first of all", exact=True).last).to_be_visible()
    say(page, "what now")
    expect(page.get_by_text("Number 300.", exact=True)).to_be_visible()
    expect(page.locator(".message.agent:not(.live)").get_by_text("This is now.")).to_have_count(1)


@pytest.mark.req("UX-02")
def test_a_conversation_that_could_not_be_opened_asks_for_nothing_any_more(visit: Visit, hub: HubProcess) -> None:
    thread = hub.say("/help", channel="page", chatId="broken")["threadId"]
    page = visit.sign_in()
    page.route(f"**/threads/{thread}/messages*", lambda route: route.fulfill(status=500, json={}))
    visit.go(f"chat/{thread}")
    expect(page.get_by_role("alert")).to_be_visible()
    visit.go("inbox")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    hub.say("/help", channel="page", chatId="broken")
    wait_for(lambda: page.evaluate("1") and [url for url in asked if "/approvals" in url], "a look at the inbox")
    assert not [url for url in asked if f"/threads/{thread}/messages" in url]


@pytest.mark.req("UX-02")
def test_a_file_that_is_still_on_its_way_goes_with_the_message(visit: Visit, model: ScriptedServer) -> None:
    model.rules(Rule(match="the letter", reply=Reply(text="Thank you.")))
    page = visit.sign_in()
    held: list[Route] = []
    page.route("**/files*", lambda route: held.append(route) if route.request.method == "POST" else route.continue_())
    page.locator("input[type=file]").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"Dear Ada"})
    expect(page.locator(".attached .badge")).to_contain_text("a.txt")
    wait_for(lambda: page.evaluate("1") and held, "the upload")
    say(page, "Here is the letter")
    page.keyboard.press("Enter")
    held[0].continue_()
    own = page.locator(".message.own").filter(has_text="Here is the letter")
    expect(own.get_by_role("button", name="Download a.txt")).to_be_visible()
    expect(own).to_have_count(1)
    expect(page.locator(".attached .badge")).to_have_count(0)


@pytest.mark.req("UX-02", "THR-04")
def test_words_that_arrived_although_the_page_did_not_learn_of_it_are_said_once(
    visit: Visit, hub: HubProcess, model: ScriptedServer
) -> None:
    model.rules(Rule(match="only once", reply=Reply(text="Understood.")))
    page = visit.sign_in()

    def lose_answer(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/message", lose_answer)
    say(page, "say this only once")
    expect(page.get_by_label("Your message")).to_have_value("say this only once")
    page.unroute("**/message")
    with page.expect_response("**/message"):
        page.keyboard.press("Enter")
    expect(page.locator(".message.agent:not(.live)").get_by_text("Understood.")).to_have_count(1)
    expect(page.locator(".live")).to_have_count(0)
    thread = page.url.rpartition("/")[2]
    if not thread.startswith("thr_"):
        thread = next(one["id"] for one in hub.http.get("/threads").json()["threads"] if one["chatId"] == "main")
    said = hub.http.get(f"/threads/{thread}/messages", params={"limit": 1000}).json()["messages"]
    assert [one["text"] for one in said].count("say this only once") == 1
    expect(page.locator(".message.own").get_by_text("say this only once", exact=True)).to_have_count(1)


@pytest.mark.req("UX-02", "THR-01")
def test_a_conversation_that_begins_elsewhere_appears_in_the_list(visit: Visit, hub: HubProcess) -> None:
    page = visit.sign_in()
    expect(page.get_by_label("Your message")).to_be_visible()
    hub.say("The tulips are out", channel="api", chatId="garden")
    expect(page.locator(".threads a").get_by_text("The tulips are out", exact=True)).to_be_visible()


@pytest.mark.req("UX-02", "POL-03")
def test_a_rule_is_answered_in_the_chat_and_counted_until_then(visit: Visit, hub: HubProcess) -> None:
    page = visit.sign_in()
    say(page, "Remember: always ask before deleting mail.")
    card = page.locator(".log .question").filter(has_text="always ask before deleting mail")
    expect(card).to_be_visible()
    expect(page.locator("#inbox-count")).to_have_text("1")
    page.reload()
    card.get_by_role("button", name="Yes", exact=True).click()
    expect(card).to_have_count(0)
    assert [one["state"] for one in hub.http.get("/rules").json()["rules"]] == ["active"]
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02")
def test_conversations_of_other_places_are_named_in_words(visit: Visit, hub: HubProcess, model: ScriptedServer) -> None:
    model.rules(Rule(match="swim", reply=Reply(text="When?")))
    hub.say("I want to swim", channel="goal_creation", chatId="chat_swim")
    hub.say("swim from afar", channel="cli", chatId="terminal")
    page = visit.sign_in()
    listed = page.get_by_role("navigation", name="Conversations").get_by_role("listitem")
    expect(listed.filter(has_text="I want to swim")).to_contain_text("a new goal")
    expect(listed.filter(has_text="swim from afar")).to_contain_text("the terminal")
    listed.filter(has_text="swim from afar").get_by_role("link").click()
    expect(page.get_by_text("Answer in the terminal")).to_be_visible()
    page.get_by_label("Search what was said").fill("swim")
    hits = page.locator(".threads li", has_text="swim")
    expect(hits.filter(has_text="the terminal")).not_to_have_count(0)
