"""The feed on the page: what comes, what came, and when it comes (UX-02)."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from sqlalchemy import create_engine

from annabelle.core.messages import OWNER
from annabelle.store.database import sqlite_url
from annabelle.store.feed import NewFeedItem, add_feed_item
from browser.browsing import PHONE, Visit
from support.scripted_model import Call, Reply, Rule, ScriptedServer


def add_items(visit: Visit, count: int) -> None:
    with create_engine(sqlite_url(visit.hub.home.database_file)).begin() as conn:
        for number in range(count):
            item = NewFeedItem(user_id=OWNER, kind="reflection", title=f"Old {number}.", content=f"Thought {number}")
            assert add_feed_item(conn, item) is not None


@pytest.mark.req("UX-02", "AGE-09")
def test_the_feed_says_what_to_do_comes_live_and_shows_what_is_from_outside(
    visit: Visit, model: ScriptedServer
) -> None:
    visit.sign_in()
    page = visit.go("feed")
    page.get_by_role("link", name="Make a goal first.").click()
    goal = visit.hub.http.post("/goals", json={"title": "Piano", "tools": []}).json()["goalId"]
    visit.go("feed")
    expect(page.get_by_text("Nothing has come yet.")).to_be_visible()
    expect(page.get_by_text("Morning 08:00, Afternoon 13:00, Evening 19:00")).to_be_visible()
    items = [
        {"kind": "discovery", "title": "A recital", "content": "See **the hall**.", "goal_id": goal},
        {"kind": "reflection", "title": "Two weeks", "content": "You practise <b>daily</b>."},
    ]
    bring = Reply(tool_calls=[Call(name="generate_feed", arguments={"items": items})])
    model.rules(Rule(match="This is the morning feed", results=0, reply=bring), Rule(reply=Reply(text="")))
    assert visit.hub.http.post("/skills/Morning feed/run").status_code == 200
    found = page.get_by_role("article", name="A recital")
    expect(found).to_contain_text("Discovery")
    expect(found.locator("strong")).to_have_text("the hall")
    expect(page.get_by_role("article", name="Two weeks")).to_contain_text("<b>daily</b>")
    with create_engine(sqlite_url(visit.hub.home.database_file)).begin() as conn:
        foreign = NewFeedItem(user_id=OWNER, kind="discovery", title="Buy", content="Now.", read_from=["web"])
        add_feed_item(conn, foreign)
    page.reload()
    expect(page.get_by_role("article", name="Buy")).to_contain_text("These may be somebody else's words.")
    expect(page.get_by_role("article", name="A recital")).not_to_contain_text("somebody else's")
    page.get_by_role("article", name="A recital").get_by_role("link", name="Piano").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Piano")
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "AGE-09")
def test_older_items_come_on_demand_and_the_times_are_changed(visit: Visit) -> None:
    visit.hub.http.post("/goals", json={"title": "Garden", "tools": []})
    assert visit.hub.http.post("/skills/Afternoon feed/update", json={"schedule": "*/30 13 * * *"}).status_code == 200
    add_items(visit, 35)
    visit.sign_in()
    visit.page.set_viewport_size(PHONE)
    page = visit.go("feed")
    items = page.get_by_role("article")
    expect(items).to_have_count(10)
    expect(items.first).to_contain_text("Old 34.")
    page.get_by_role("button", name="Show older").click()
    expect(items).to_have_count(30)
    page.get_by_role("button", name="Show older").click()
    expect(page.get_by_role("button", name="Show older")).to_be_hidden()
    expect(items.filter(has_text="Old 0.")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Change the times").click()
    page.get_by_label("Morning").fill("07:30")
    page.get_by_label("Evening").fill("")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Morning 07:30, Afternoon at */30 13 * * * (cron, UTC) (")).to_be_visible()
    page.get_by_role("button", name="Switch off").click()
    page.get_by_role("dialog").get_by_role("button", name="Switch off").click()
    expect(page.get_by_text("It is switched off.")).to_be_visible()
    schedule = visit.hub.http.get("/feed/schedule").json()
    assert (schedule["morning"], schedule["afternoon"], schedule["evening"]) == (None, None, None)
    assert (visit.foreign, visit.errors) == ([], [])
