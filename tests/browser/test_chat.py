"""Talking on the page: words appear as they come, calls open, questions are answered in place (UX-02)."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from sqlalchemy import Connection, create_engine, insert, select

from annabelle.core.messages import now
from annabelle.store.database import sqlite_url
from annabelle.store.tables import messages
from browser.browsing import Visit, visiting
from hub.hubs import HubProcess, fresh_home, wait_for
from support.network import free_port
from support.scripted_model import Call, Reply, Rule, ScriptedServer


def say(page: Page, text: str) -> None:
    page.get_by_label("Your message").fill(text)
    page.keyboard.press("Enter")


def add_many(conn: Connection, thread_id: str, count: int) -> None:
    """As if so much had been said."""
    first = conn.execute(select(messages).where(messages.c.thread_id == thread_id)).mappings().first()
    assert first is not None
    rows = [
        {
            **first,
            "id": f"{thread_id}_{number}",
            "content": "A pelican." if number == 77 else f"Number {number}.",
            "state": "done",
            "external_id": None,
        }
        for number in range(1, count + 1)
    ]
    for row in rows:
        row.pop("position", None)
        row["created_at"] = now()
    conn.execute(insert(messages), rows)


@pytest.mark.req("UX-02")
def test_an_answer_streams_in_and_stays(visit: Visit, model: ScriptedServer) -> None:
    model.rules(Rule(match="Hello", reply=Reply(text="**Good morning**, this is <b>Annabelle</b>.", chunks=6)))
    page = visit.sign_in()
    page.get_by_label("Your message").fill("Hello")
    page.keyboard.press("Enter")
    answer = page.locator(".message.agent").get_by_text("Good morning")
    expect(answer).to_be_visible()
    expect(page.locator(".message.agent strong")).to_have_text("Good morning")
    expect(page.locator(".message.agent").get_by_text("<b>Annabelle</b>")).to_be_visible()
    page.reload()
    expect(answer).to_be_visible()
    expect(page.locator(".message.own")).to_have_count(1)
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "POL-03")
def test_a_question_is_answered_in_the_chat_and_a_second_tab_learns_of_it(visit: Visit, hub: HubProcess) -> None:
    (hub.home.workspace / "old.txt").write_text("old")
    page = visit.sign_in()
    other = visit.context.new_page()
    other.goto(f"{hub.url}/page/#/inbox")
    say(page, 'Look. {"calls": [{"name": "filer_delete_file", "arguments": {"path": "old.txt"}}], "say": "Gone."}')
    for one in (page, other):
        expect(one.locator(".question").get_by_text("old.txt").first).to_be_visible()
    expect(other.locator("#inbox-count")).to_have_text("1")
    expect(page.locator(".question q")).to_contain_text("Look.")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".message.agent:not(.live) .md").get_by_text("Gone.", exact=True)).to_be_visible()
    assert not (hub.home.workspace / "old.txt").exists()
    expect(other.get_by_text("Nothing waits for you.")).to_be_visible()
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02")
def test_two_tabs_that_answer_the_same_question_say_so(visit: Visit, hub: HubProcess) -> None:
    (hub.home.workspace / "two.txt").write_text("two")
    page = visit.sign_in()
    say(page, 'Look. {"calls": [{"name": "filer_delete_file", "arguments": {"path": "two.txt"}}], "say": "Gone."}')
    deny = page.get_by_role("button", name="Deny")
    expect(deny).to_be_visible()
    (asked,) = hub.http.get("/approvals", params={"state": "pending"}).json()["approvals"]

    def answer_first(route: Route) -> None:
        if route.request.method == "POST":
            hub.http.post(f"/approvals/{asked['id']}", json={"verdict": "deny"})
        route.continue_()

    page.route(f"**/approvals/{asked['id']}", answer_first)
    deny.click()
    expect(page.locator(".toast").get_by_text("answered already")).to_be_visible()
    expect(page.locator(".message").get_by_text("denied", exact=True)).to_be_visible()
    assert (hub.home.workspace / "two.txt").exists()


@pytest.mark.req("UX-02", "THR-05")
def test_what_failed_is_tried_again_or_dismissed(visit: Visit, model: ScriptedServer) -> None:
    model.rules(Rule(match="flaky", reply=Reply.failing(500, "out of order")))
    page = visit.sign_in()
    error = page.locator(".message.error").last
    say(page, "a flaky thing")
    expect(error).to_be_visible()
    model.rules(Rule(match="flaky", reply=Reply(text="Now it works.")))
    error.get_by_role("button", name="Try again").click()
    expect(page.locator(".message.agent:not(.live)").get_by_text("Now it works.")).to_be_visible()
    model.rules(Rule(match="flaky", reply=Reply.failing(500, "out of order")))
    say(page, "another flaky thing")
    expect(page.locator(".message.error")).to_have_count(2)
    error.get_by_role("button", name="Dismiss").click()
    expect(error.get_by_text("Dismissed.")).to_be_visible()
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "POL-03")
def test_a_call_is_changed_field_by_field_and_a_rule_made_by_always_is_ended(
    visit: Visit, hub: HubProcess, model: ScriptedServer
) -> None:
    model.rules()
    for name in ("right.txt", "wrong.txt"):
        (hub.home.workspace / name).write_text(name)
    page = visit.sign_in()
    asked = 'Look. {"calls": [{"name": "filer_delete_file", "arguments": {"path": "wrong.txt"}}], "say": "Gone."}'
    say(page, asked)
    page.get_by_role("button", name="Change …").click()
    page.get_by_label("path", exact=True).fill("right.txt")
    page.get_by_role("button", name="Approve this call").click()
    wait_for(lambda: not (hub.home.workspace / "right.txt").exists(), "the call as it was changed")
    expect(page.get_by_text("approved and done").last).to_be_visible()
    say(page, asked)
    page.get_by_role("button", name="Always").click()
    wait_for(lambda: not (hub.home.workspace / "wrong.txt").exists(), "the call that is always allowed")
    visit.go("inbox")
    page.get_by_text("Rules that hold (1)").click()
    page.get_by_role("button", name="End the rule").click()
    page.get_by_role("dialog").get_by_role("button", name="End it").click()
    expect(page.get_by_text("Rules that hold")).to_be_hidden()
    assert [one["state"] for one in hub.http.get("/rules", params={"revoked": True}).json()["rules"]] == ["revoked"]
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "THR-01")
def test_conversations_are_named_by_what_they_are_about(visit: Visit, hub: HubProcess) -> None:
    goal = hub.http.post("/goals", json={"title": "Learn the piano", "tools": []}).json()["goalId"]
    hub.say("How do I begin?", channel="goal", chatId=goal)
    page = visit.sign_in()
    say(page, "/new")
    expect(page.locator(".message").get_by_text("A new conversation begins.")).to_be_visible()
    say(page, "When does the ferry leave?")
    expect(page.locator(".message.own").get_by_text("When does the ferry leave?")).to_be_visible()
    visit.go("chat")
    page.reload()
    for name in ("When does the ferry leave?", "Learn the piano"):
        expect(page.locator(".threads a").get_by_text(name, exact=True)).to_be_visible()


@pytest.mark.req("UX-02", "TRU-06")
def test_a_stop_takes_questions_back_and_another_browser_shows_it(
    visit: Visit, hub: HubProcess, model: ScriptedServer
) -> None:
    model.rules()
    (hub.home.workspace / "kept.txt").write_text("kept")
    page = visit.sign_in()
    other = visit.context.new_page()
    other.goto(f"{hub.url}/page/#/inbox")
    say(page, 'Look. {"calls": [{"name": "filer_delete_file", "arguments": {"path": "kept.txt"}}], "say": "Gone."}')
    expect(other.locator(".question")).to_be_visible()
    other.get_by_role("button", name="Stop everything").click()
    expect(other.get_by_text("until you press Resume")).to_be_visible()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    expect(page.locator(".question")).to_have_count(0)
    expect(page.locator(".live")).to_have_count(0)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Stop everything")).to_be_visible()


@pytest.mark.req("UX-02")
def test_a_call_says_at_once_that_it_failed_and_the_words_after_it_grow(visit: Visit, model: ScriptedServer) -> None:
    calls = [
        Call(name="filer_create_file", arguments={"path": "violet.md", "content": "violet words"}),
        Call(name="filer_read_file", arguments={"path": "no-such-file.md"}),
    ]
    model.rules(
        Rule(match="count", results=0, reply=Reply(tool_calls=calls)),
        Rule(match="count", reply=Reply(text="one two three " * 20, chunks=40, chunk_delay=1)),
    )
    page = visit.sign_in()
    say(page, "Please create the file violet.md and count.")
    live = page.locator(".live")
    expect(live.locator(".tool .state.success")).to_have_count(1)
    expect(live.locator(".tool .state.failure")).to_have_count(1)
    expect(live.locator(".tool").first).to_contain_text("violet words")
    expect(live.get_by_text("one two three one")).to_be_visible()
    live.get_by_role("button", name="Stop").click()
    expect(live).to_have_count(0)
    expect(page.locator(".tool", has_text="filer read file").locator(".state.failure")).to_be_visible()


@pytest.mark.req("UX-02", "TRU-06")
def test_a_page_that_is_opened_while_everything_is_stopped_says_so(visit: Visit) -> None:
    page = visit.sign_in()
    page.get_by_role("button", name="Stop everything").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Stop everything")).to_be_visible()


@pytest.mark.req("UX-02")
def test_a_turn_is_stopped(visit: Visit, model: ScriptedServer) -> None:
    model.rules(Rule(match="count", reply=Reply(text="one two three " * 20, chunks=40, chunk_delay=1)))
    page = visit.sign_in()
    say(page, "count to ten")
    expect(page.locator(".live").get_by_text("one two")).to_be_visible()
    page.locator(".live").get_by_role("button", name="Stop").click()
    expect(page.locator(".live")).to_have_count(0)
    expect(page.get_by_text("stopped", exact=False).last).to_be_visible()
    assert visit.hub.http.get("/sessions/current").json()["stopped"] is False, "only this turn was"


@pytest.mark.req("UX-02", "THR-04")
def test_a_hub_that_is_killed_while_a_word_streams_comes_back_and_the_answer_is_whole(
    browser: Browser, tmp_path: Path, model: ScriptedServer
) -> None:
    model.rules(
        Rule(
            match="story",
            reply=Reply(text="Once upon a time there was a hub. " * 5 + "The end.", chunks=12, chunk_delay=0.4),
        )
    )
    port = free_port()
    hub = HubProcess(fresh_home(tmp_path), model.openai_url, ANNABELLE_PORT=str(port)).start()
    try:
        with visiting(browser, hub) as visit:
            page = visit.sign_in()
            say(page, "tell me a story")
            expect(page.locator(".live").get_by_text("Once upon")).to_be_visible()
            hub.kill()
            expect(page.locator("#connection")).to_be_visible()
            hub.start()
            expect(page.locator("#connection")).to_be_hidden()
            expect(page.locator(".message.agent:not(.live)").get_by_text("The end.")).to_have_count(1)
            expect(page.locator(".live")).to_have_count(0)
    finally:
        hub.end()


@pytest.mark.req("UX-02")
def test_an_answer_of_a_megabyte_is_shown_and_the_page_stays_usable(visit: Visit, model: ScriptedServer) -> None:
    model.rules(Rule(match="everything", reply=Reply(text="All of it. " * 100_000, chunks=20)))
    page = visit.sign_in()
    say(page, "tell me everything")
    expect(page.locator(".message.agent:not(.live) pre.plain").last).to_be_attached()
    visit.go("inbox")
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "THR-01")
def test_a_long_thread_opens_at_its_end_and_loads_older_messages_on_scroll(visit: Visit, hub: HubProcess) -> None:
    said = hub.say("first of all", channel="page", chatId="long")
    with create_engine(sqlite_url(hub.home.database_file)).begin() as conn:
        add_many(conn, str(said["threadId"]), 10_000)
    page = visit.sign_in()
    visit.go(f"chat/{said['threadId']}")
    expect(page.get_by_text("Number 10000.", exact=True)).to_be_visible()
    assert page.locator(".message").count() <= 60
    for _ in range(3):
        before = page.locator(".message").count()
        page.locator(".log").evaluate("(log) => { log.scrollTop = 0 }")
        page.wait_for_function("(before) => document.querySelectorAll('.message').length > before", arg=before)
    page.get_by_label("Search what was said").fill("pelican")
    page.locator(".threads a").get_by_text("pelican").click()
    expect(page.locator(".message").get_by_text("A pelican.")).to_be_visible()
    assert (visit.foreign, visit.errors) == ([], [])
