"""Skills on the page: the week, what each does and did, and every change to one (UX-02, SKL-01)."""

from __future__ import annotations

from collections import Counter

import httpx2 as httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from browser.browsing import PHONE, Visit
from hub.hubs import HubProcess, wait_for
from support.scripted_model import Call, Reply, Rule, ScriptedServer


def skill(hub: HubProcess, name: str) -> dict[str, object]:
    return hub.http.get(f"/skills/{name}").raise_for_status().json()


@pytest.fixture(scope="module", autouse=True)
def offered(hub: HubProcess) -> None:
    wait_for(lambda: hub.http.get("/skills/Nightly Backup").is_success, "the skills that come along")


def remind(hub: HubProcess, model: ScriptedServer, message: str, when: str) -> None:
    """Say it, and the model makes the reminder."""
    made = Call(name="memory_store_skill", arguments={"message": message, "when": when})
    model.rules(Rule(results=1, reply=Reply(text="I will.")), Rule(reply=Reply(tool_calls=[made])))
    hub.say(f"remind me {when} to {message}")
    assert skill(hub, message)["enabled"]


def open_skill(visit: Visit, name: str) -> Page:
    page = visit.go(f"skills/{skill(visit.hub, name)['skillId']}")
    expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
    return page


def rows_of(places: Locator) -> list[int]:
    """How many stand in each row, all seen at one moment: the view may be drawn again at any."""
    tops = places.evaluate_all("all => all.map((one) => one.getBoundingClientRect().top)")
    return [*Counter(tops).values()]


@pytest.mark.req("UX-02", "SKL-01")
def test_the_week_has_seven_days_and_shows_what_will_run(visit: Visit, model: ScriptedServer) -> None:
    remind(visit.hub, model, "water the plants", "tomorrow at 9")
    visit.sign_in()
    page = visit.go("skills")
    days = page.locator(".week > li")
    expect(days).to_have_count(7)
    expect(days.nth(1)).to_contain_text("water the plants")
    assert all(days.nth(day).get_by_text("Nightly Backup").count() == 1 for day in range(1, 7))
    expect(page.get_by_text("All day long:")).to_contain_text("Agent Health (every 5 minutes)")
    assert rows_of(days) == [7]
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    assert rows_of(days) == [1] * 7
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "SKL-01")
def test_a_skill_is_run_by_hand_and_its_outcome_appears(visit: Visit) -> None:
    visit.sign_in()
    page = open_skill(visit, "Nightly Backup")
    page.get_by_role("button", name="Run Nightly Backup now").click()
    runs = page.get_by_role("table")
    expect(runs.get_by_text("finished")).to_be_visible()
    expect(page.locator(".card").get_by_text("finished")).to_be_visible()
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "SKL-09")
def test_a_reminder_is_changed_switched_off_and_deleted(visit: Visit, model: ScriptedServer) -> None:
    hub = visit.hub
    remind(hub, model, "feed the cat", "tomorrow at 7:30")
    visit.sign_in()
    page = open_skill(visit, "feed the cat")
    page.get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Tools it may use")).to_have_count(0)
    page.get_by_label("When", exact=True).fill("whenever you like")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toast.error")).to_be_visible()
    page.get_by_label("Name").fill("feed both cats")
    page.get_by_label("When", exact=True).fill("every weekday at 8:30")
    page.get_by_label("What it says").fill("Feed both cats.")
    page.get_by_label("Tell me what came of it").uncheck()
    page.get_by_label("If Annabelle was not running").select_option("skip")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="feed both cats", level=1)).to_be_visible()
    expect(page.get_by_text("Runs every weekday at 08:30.", exact=True)).to_be_visible()
    changed = skill(hub, "feed both cats")
    expect(page.locator(".hint", has_text="Next:").locator("time")).to_have_attribute("datetime", changed["nextDue"])
    assert changed["plan"] == {"tool": "send_message", "arguments": {"message": "⏰ Feed both cats."}}
    assert (changed["notify"], changed["missed"]) == (False, "skip")
    page.get_by_role("button", name="Switch off").click()
    expect(page.get_by_role("button", name="Switch on")).to_be_visible()
    assert skill(hub, "feed both cats")["enabled"] is False
    page.get_by_role("button", name="Delete …").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert skill(hub, "feed both cats")["enabled"] is False
    page.get_by_role("button", name="Delete …").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator(".week")).to_be_visible()
    assert hub.http.get("/skills/feed both cats").status_code == 404
    refused = [one for one in visit.errors if "422" not in one]
    assert (visit.foreign, refused) == ([], [])


@pytest.mark.req("UX-02", "POL-09")
def test_an_offered_skill_is_changed_and_runs_after_a_yes_that_shows_all_of_it(
    visit: Visit, model: ScriptedServer
) -> None:
    hub = visit.hub
    remind(hub, model, "call mum", "tomorrow at 8:00")  # a conversation to report to
    model.rules(Rule(match="Name one fact", reply=Reply(text="You have two projects.")))
    visit.sign_in()
    page = open_skill(visit, "Morning Briefing")
    expect(page.get_by_text("It needs what is not there now: gmail_list_events")).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Instructions").fill("Name one fact that you know.")
    page.get_by_label("Tools it may use").fill("")
    page.get_by_label("Add a tool").fill("memory_list_facts")
    page.get_by_label("Add a tool").press("Tab")
    expect(page.get_by_label("Tools it may use")).to_have_value("memory_list_facts")
    page.get_by_label("When", exact=True).fill("15 7 * * 1")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Runs every Monday at 07:15.", exact=True)).to_be_visible()
    assert skill(hub, "Morning Briefing")["requiredTools"] == ["memory_list_facts"]
    page.get_by_role("button", name="Switch on").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Name one fact that you know.")
    expect(question).to_contain_text("memory_list_facts")
    question.get_by_role("button", name="Cancel").click()
    assert skill(hub, "Morning Briefing")["confirmedAt"] is None
    page.get_by_role("button", name="Switch on").click()
    question.get_by_role("button", name="Switch on").click()
    page.get_by_role("button", name="Run Morning Briefing now").click()
    expect(page.get_by_role("table").get_by_text("You have two projects.")).to_be_visible()
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "SKL-11")
def test_a_webhook_is_shown_once_and_a_new_one_ends_the_old(visit: Visit, model: ScriptedServer) -> None:
    remind(visit.hub, model, "open the shop", "tomorrow at 10")
    visit.sign_in()
    page = open_skill(visit, "open the shop")
    page.get_by_role("button", name="Make an address").click()
    url = page.get_by_label("Post to this address")
    first = url.input_value()
    assert httpx.post(first).status_code == 202
    expect(page.get_by_text("Nothing was due yet.")).to_have_count(0)
    expect(url).to_have_value(first)  # it was drawn again, and the address is shown only once
    page.reload()
    expect(url).to_have_count(0)
    page.get_by_role("button", name="New address …").click()
    page.get_by_role("dialog").get_by_role("button", name="Make it").click()
    assert url.input_value() != first
    assert httpx.post(first).status_code == 404
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02")
def test_everything_of_a_skill_fits_on_a_phone(visit: Visit) -> None:
    visit.page.set_viewport_size(PHONE)
    visit.sign_in()
    page = open_skill(visit, "Weekly Digest")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Instructions")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "SKL-01")
def test_a_new_skill_is_ordered_in_the_chat(visit: Visit, model: ScriptedServer) -> None:
    model.rules(Rule(reply=Reply(text="I will stretch your legs.")))
    visit.sign_in()
    page = visit.go("skills")
    page.get_by_role("button", name="New skill").click()
    page.get_by_label("When", exact=True).fill("every day at 9")
    page.get_by_label("What Annabelle should do").fill("tell me to stretch")
    page.get_by_role("button", name="Ask Annabelle to do it").click()
    expect(page.locator(".message.own").get_by_text("every day at 9: tell me to stretch")).to_be_visible()
    expect(page.locator(".message.agent").get_by_text("I will stretch your legs.")).to_be_visible()
    assert (visit.foreign, visit.errors) == ([], [])
