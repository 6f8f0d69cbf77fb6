"""What was spent, the budgets and what is paused, on the page (UX-02, CST-05, CST-10)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.browsing import PHONE, Visit
from support.scripted_model import Reply, Rule, ScriptedServer

PRICE = 0.25


def fits(page: Page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def spend(visit: Visit, model: ScriptedServer) -> None:
    model.rules(Rule(match="priced", reply=Reply(text="It had a price.", cost=PRICE)))
    visit.hub.say("something priced")


def cells(table: Locator) -> dict[str, list[str]]:
    """The rows of a table by their first cell."""
    rows = table.locator("tbody tr").all()
    texts = [row.locator("td").all_inner_texts() for row in rows]
    return {first: rest for first, *rest in texts}


@pytest.mark.req("UX-02", "CST-05")
def test_what_was_spent_is_drawn_and_stands_in_a_table_with_the_same_figures(
    visit: Visit, model: ScriptedServer
) -> None:
    page = visit.sign_in()
    visit.go("costs")
    expect(page.get_by_text("No model was asked yet.")).to_be_visible()
    spend(visit, model)
    for by, key in (("day", None), ("model", "compatible/scripted"), ("agent", "annabelle"), ("purpose", "chat")):
        (total,) = [
            one
            for one in visit.hub.http.get("/costs", params={"by": by, "everyone": True}).json()["totals"]
            if key in (None, one["key"])
        ]
        visit.go(f"costs?by={by}")
        expect(page.get_by_role("img", name=f"Money by {by}. The table has the same figures.")).to_be_visible()
        table = page.get_by_role("table", name=f"What was spent by {by}")
        expect(table).to_be_visible()
        cost, calls, tokens_in, tokens_out = cells(table)[total["key"]]
        assert cost.strip(" *") == f"${total['costUsd']:.2f}"
        assert (calls, tokens_out) == (str(total["calls"]), f"{total['outputTokens']:,}")
        assert tokens_in.startswith(f"{total['inputTokens']:,}")
        assert page.locator(".plot rect title", has_text=f"{total['key']}: ${total['costUsd']:.2f}").count() == 1
    page.get_by_role("link", name="Tokens").click()
    expect(page.get_by_role("img", name="Tokens by purpose.")).to_be_visible()
    page.get_by_role("link", name="By goal").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("img", name="Tokens by goal.")).to_be_visible()
    expect(page.get_by_role("link", name="By goal")).to_be_focused()
    expect(page.get_by_role("table", name="What was spent by goal").get_by_text("No goal")).to_be_visible()
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "CST-05")
def test_calls_without_a_known_price_are_named(visit: Visit, model: ScriptedServer) -> None:
    spend(visit, model)
    page = visit.sign_in()
    visit.go("costs")
    row = page.get_by_role("table", name="Calls without a known price").get_by_role("row", name="compatible/scripted")
    expect(row).to_be_visible()
    (total,) = visit.hub.http.get("/costs", params={"by": "model", "everyone": True}).json()["totals"]
    expect(row.get_by_text(f"{total['unpriced']} of {total['calls']}")).to_be_visible()
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "CST-05")
def test_budgets_are_set_and_hold_at_once(visit: Visit, model: ScriptedServer) -> None:
    spend(visit, model)
    page = visit.sign_in()
    visit.go("costs")
    expect(page.get_by_text("no budget is set").first).to_be_visible()

    def change(day: str, month: str) -> None:
        page.get_by_label("The most a day may cost").fill(day)
        page.get_by_label("The most a month may cost").fill(month)
        page.get_by_role("button", name="Save").click()

    page.get_by_role("button", name="Change budgets").click()
    change("much", "30")
    expect(page.get_by_text("“much” is no amount of money.")).to_be_visible()
    change("0.10", "30")
    day, month = page.get_by_role("meter", name="Today"), page.get_by_role("meter", name="This month")
    expect(day).to_be_visible()
    expect(month).to_have_attribute("aria-valuemax", "30")
    expect(page.get_by_text("used up", exact=True)).to_be_visible()
    settings = visit.hub.home.settings_file.read_text()
    assert "BUDGET_DAY_USD=0.1\n" in settings
    assert "BUDGET_MONTH_USD=30\n" in settings
    refused = visit.hub.say("something priced")
    assert "budget" in str(refused["reply"])
    page.get_by_role("button", name="Change budgets").click()
    change("", "")
    expect(page.get_by_text("no budget is set")).to_have_count(2)
    assert "BUDGET" not in visit.hub.home.settings_file.read_text()
    assert visit.hub.say("something priced")["state"] == "done"
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02", "CST-04", "CST-10")
def test_a_paused_agent_says_why_and_goes_on_when_it_is_told_to(visit: Visit) -> None:
    visit.hub.http.post("/agents/annabelle/pause", json={"reason": "far too many tokens"})
    page = visit.sign_in()
    visit.go("costs")
    expect(page.get_by_text("far too many tokens")).to_be_visible()
    page.get_by_role("button", name="Let annabelle go on").click()
    page.get_by_role("dialog").get_by_role("button", name="Let it go on").click()
    expect(page.get_by_text("None is paused.")).to_be_visible()
    (agent,) = visit.hub.http.get("/agents").json()["agents"]
    assert (agent["paused"], agent["costs"]["currentHourTokens"]) == (False, 0)
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02")
def test_costs_fit_a_phone(visit: Visit, model: ScriptedServer) -> None:
    spend(visit, model)
    visit.hub.http.post("/costs/budget", json={"dayUsd": 2, "monthUsd": 30})
    visit.page.set_viewport_size(PHONE)
    page = visit.sign_in()
    for view in ("costs", "costs?by=model&show=tokens"):
        visit.go(view)
        expect(page.locator(".plot")).to_be_visible()
        assert fits(page)
        assert page.evaluate("scrollY") == 0
    visit.hub.http.post("/costs/budget", json={"dayUsd": None, "monthUsd": None})
    assert (visit.foreign, visit.errors) == ([], [])
