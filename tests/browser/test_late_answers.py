"""Answers of the hub that come late, or not at all, and forms that are sent twice or too early (UX-02)."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect
from sqlalchemy import create_engine

from annabelle.store.database import sqlite_url
from browser.browsing import PHONE, Visit
from browser.test_chat import add_many
from hub.hubs import HubProcess, wait_for
from support.scripted_model import Reply, Rule, ScriptedServer


@pytest.mark.req("UX-02")
def test_a_line_of_a_log_that_comes_slowly_is_shown_once(own_visit: Visit, hub: HubProcess) -> None:
    page = own_visit.sign_in()
    page.clock.install()
    own_visit.go("system/logs")
    expect(page.locator(".log-lines span").first).to_be_visible()
    held: list[Route] = []
    page.route("**/logs/hub*", lambda route: route.continue_() if held else held.append(route))
    with (hub.home.logs / "hub.log").open("a") as log:
        log.write("A line that is looked for\n")
    page.clock.run_for(10_000)
    wait_for(lambda: page.evaluate("1") and held, "a look at the log")
    with page.expect_response(lambda answer: answer.request == held[0].request):
        held[0].continue_()
    page.clock.run_for(10_000)
    expect(page.get_by_text("A line that is looked for")).to_have_count(1)


@pytest.mark.req("UX-02", "MEM-07")
def test_what_will_be_forgotten_is_never_shown_below_other_words(visit: Visit) -> None:
    page = visit.sign_in()
    visit.go("memory/forget")
    held: list[Route] = []
    page.route("**/memory/forget", lambda route: held.append(route))
    words = page.get_by_label("What to forget")
    words.fill("the garden")
    page.get_by_role("button", name="Look where it stands").click()
    wait_for(lambda: page.evaluate("1") and held, "a look")
    words.fill("the whole town")
    held[0].continue_()
    expect(page.get_by_role("button", name="Look where it stands")).to_be_enabled()
    expect(page.get_by_text("It stands nowhere in these words.")).to_have_count(0)
    expect(page.get_by_role("heading", name="Everything that will go")).to_have_count(0)


@pytest.mark.req("UX-02")
def test_a_new_skill_that_the_hub_did_not_take_can_be_sent_again(visit: Visit, model: ScriptedServer) -> None:
    model.rules(Rule(reply=Reply(text="I will.")))
    page = visit.sign_in()
    visit.go("skills")
    page.route("**/message", lambda route: route.fulfill(status=503, json={"error": {"message": "Not now."}}))
    page.get_by_role("button", name="New skill").click()
    page.get_by_label("When", exact=True).fill("every day at 9")
    page.get_by_label("What Annabelle should do").fill("water the roses")
    page.get_by_role("button", name="Ask Annabelle to do it").click()
    dialog = page.get_by_role("dialog", name="A new skill")
    expect(dialog).to_contain_text("Not now.")
    expect(dialog).to_have_accessible_description("Not now.")
    expect(page.get_by_label("What Annabelle should do")).to_have_value("water the roses")
    page.unroute("**/message")
    page.get_by_role("button", name="Ask Annabelle to do it").click()
    expect(page.locator(".message.own").get_by_text("every day at 9: water the roses")).to_be_visible()


@pytest.mark.req("UX-02", "MEM-07")
def test_a_form_that_lacks_what_it_needs_is_not_sent_and_a_late_answer_takes_nobody_from_it(visit: Visit) -> None:
    page = visit.sign_in()
    held: list[Route] = []
    late = "memory_list_facts"
    page.route("**/call", lambda one: held.append(one) if late in (one.request.post_data or "") else one.continue_())
    visit.go("memory")
    page.get_by_text("Add a fact", exact=True).click()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or ""))
    page.get_by_role("button", name="Remember it").click()
    expect(page.get_by_label("The fact", exact=True)).to_be_focused()
    assert not [one for one in asked if "store_fact" in one]
    wait_for(lambda: page.evaluate("1") and held, "a look at the facts")
    held[0].continue_()
    expect(page.get_by_text("The newest first.")).to_be_visible()
    expect(page.get_by_label("The fact", exact=True)).to_be_focused()


@pytest.mark.req("UX-02", "MEM-07")
def test_instructions_that_nobody_changed_are_not_made_ones_own(visit: Visit) -> None:
    page = visit.sign_in()
    visit.go("memory/persona")
    page.get_by_role("button", name="Save the instructions").click()
    expect(page.locator(".toast").get_by_text("Nothing to change.")).to_be_visible()
    assert not visit.hub.http.get("/agents/annabelle/persona").json()["file"]


@pytest.mark.req("UX-01", "UX-02")
def test_what_was_typed_on_the_first_visit_is_kept_without_a_press_of_keep(own_visit: Visit, hub: HubProcess) -> None:
    hub.home.settings_file.unlink(missing_ok=True)
    page = own_visit.sign_in(first=True)
    page.get_by_label("What Annabelle calls you").fill("Grace")
    page.get_by_role("button", name="To the chat", exact=True).click()
    expect(page.get_by_label("Your message")).to_be_visible()
    kept = hub.home.settings_file.read_text()
    assert "Grace" in kept
    assert "USER_TIMEZONE" not in kept


@pytest.mark.req("TRC-04", "UX-02")
def test_new_turns_push_no_older_one_out_of_the_list(visit: Visit, hub: HubProcess, model: ScriptedServer) -> None:
    model.rules(Rule(reply=Reply(text="Yes.")))
    said = hub.say("Turn 0", channel="api", chatId="turn-0")
    with create_engine(sqlite_url(hub.home.database_file)).begin() as conn:
        add_many(conn, str(said["threadId"]), 51)
    page = visit.sign_in()
    visit.go("traces")
    page.get_by_role("button", name="Show older turns").click()
    expect(page.get_by_role("link", name="Turn 0", exact=True)).to_be_visible()
    page.locator("h1").click()
    for number in range(52, 56):
        hub.say(f"Turn {number}", channel="api", chatId="turn-0")
    expect(page.get_by_role("link", name="Turn 55", exact=True)).to_be_visible()
    shown = page.get_by_role("link", name=re.compile(r"^(Turn|Number) \d+\.?$")).all_inner_texts()
    wanted = [f"Turn {number}" for number in (0, *range(52, 56))] + [f"Number {number}." for number in range(1, 52)]
    assert sorted(shown) == sorted(wanted)


@pytest.mark.req("CST-09", "UX-02")
def test_a_table_of_costs_that_was_opened_stays_open(visit: Visit, hub: HubProcess, model: ScriptedServer) -> None:
    model.rules(Rule(reply=Reply(text="Yes.")))
    hub.say("One more call")
    visit.page.set_viewport_size(PHONE)
    page = visit.sign_in()
    visit.go("costs")
    page.get_by_text("As a table").click()
    expect(page.get_by_role("table", name="What was spent by day")).to_be_visible()
    with page.expect_response("**/costs/budget"):
        hub.say("And one more")
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    expect(page.get_by_role("table", name="What was spent by day")).to_be_visible()
