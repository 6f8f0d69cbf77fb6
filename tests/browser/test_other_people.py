"""Somebody else who is signed in sees nothing of the owner's, in no view and in no answer of the hub (UX-02)."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from annabelle.core.tools import JsonObject
from annabelle.hub.security.users_file import add_user
from browser.browsing import visiting
from browser.sample_home import fill
from hub.hubs import HubProcess, wait_for
from support.scripted_model import ScriptedServer

HEAR = """window.heard = ''; const real = window.fetch; window.fetch = async (...all) => {
  const answer = await real(...all);
  (async () => { const read = answer.clone().body?.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) { const { value, done } = await read.read(); if (done) return; window.heard += value }
  })().catch(() => {});
  return answer }"""
ASK = """async ([method, path, body]) => (await fetch(path, { method, body: body && JSON.stringify(body),
  headers: { 'X-Annabelle-Page': localStorage.getItem('annabelle-key'), 'Content-Type': 'application/json' },
})).status"""
WORDS = ("trains", "ICE 1045", "old plans", "piano", "Bach", "mornings", "Novak", "Rex", "I like tea", "zebra")
THEIRS = ("Chat", "Inbox", "Goals", "Feed", "Memory")
OWNERS_VIEWS = ("skills", "costs", "traces", "system", "system/settings", "setup")


def collect_ids(hub: HubProcess) -> dict[str, str]:
    """One of each kind of thing that the owner has."""

    def first(path: str, rows: str, key: str) -> str:
        found: JsonObject = hub.http.get(path).json()
        return str(found[rows][0][key])  # type: ignore[index, call-overload]

    thread = first("/threads", "threads", "id")
    return {
        "thread": thread,
        "message": first(f"/threads/{thread}/messages", "messages", "id"),
        "approval": first("/approvals", "approvals", "id"),
        "goal": first("/goals", "goals", "goalId"),
        "note": first("/notes", "notes", "noteId"),
        "trace": first("/traces", "turns", "traceId"),
    }


def list_requests(ids: dict[str, str]) -> list[tuple[str, str, JsonObject | None]]:
    reads = [
        f"/threads/{ids['thread']}", f"/threads/{ids['thread']}/messages", f"/threads/{ids['thread']}/events",
        f"/messages/{ids['message']}", f"/approvals/{ids['approval']}", f"/goals/{ids['goal']}",
        f"/notes/{ids['note']}", f"/traces/{ids['trace']}", "/traces", "/costs", "/settings", "/skills", "/backups",
        "/logs", "/audit", "/servers", "/models", "/files?path=old%20plans.txt",
    ]  # fmt: skip
    writes: list[tuple[str, JsonObject]] = [
        (f"/approvals/{ids['approval']}", {"verdict": "approve"}),
        (f"/messages/{ids['message']}/cancel", {}),
        (f"/goals/{ids['goal']}/update", {"title": "Mine"}),
        (f"/goals/{ids['goal']}/delete", {}),
        (f"/notes/{ids['note']}/delete", {}),
        ("/stop", {}),
        ("/settings", {"name": "USER_NAME", "value": "Mallory"}),
    ]
    return [*(("GET", path, None) for path in reads), *(("POST", path, body) for path, body in writes)]


@pytest.mark.req("UX-02", "TRU-07")
def test_a_guest_sees_and_changes_nothing_of_the_owners(
    browser: Browser, hub: HubProcess, model: ScriptedServer
) -> None:
    fill(hub, model)
    ids = collect_ids(hub)
    token = add_user(hub.home.users_file, "guest")
    with visiting(browser, hub) as visit:
        visit.context.add_init_script(HEAR)
        page = visit.sign_in(token)
        menu = page.get_by_role("navigation", name="Views")
        expect(menu.get_by_role("link")).to_have_text([re.compile(f"^{one}") for one in THEIRS])
        expect(page.get_by_role("button", name="Add files")).to_have_count(0)
        seen = ""
        for title in THEIRS:
            menu.get_by_role("link", name=title).click()
            expect(page.locator(f".view.{title.lower()} h1").first).to_be_attached()
            expect(page.get_by_text("Loading …").filter(visible=True)).to_have_count(0)
            hub.say(f"The zebra of {title}", channel="page")  # while the guest looks on
            seen += page.content()
        for name in OWNERS_VIEWS:
            page.evaluate("(name) => { location.hash = `#/${name}` }", name)
            expect(page.get_by_label("Your message")).to_be_visible()
            seen += page.content()
        menu.get_by_role("link", name="Chat").click()
        page.get_by_label("Your message").fill("I am the guest")
        page.keyboard.press("Enter")
        wait_for(lambda: "I am the guest" in str(page.evaluate("heard")), "an answer that is the guest's")
        heard = seen + page.evaluate("heard")
        assert [one for one in (*WORDS, *ids.values()) if one in heard] == []
        answers = {
            (method, path): page.evaluate(ASK, [method, path, body]) for method, path, body in list_requests(ids)
        }
        assert {one: status for one, status in answers.items() if status not in (403, 404)} == {}
    assert hub.http.get(f"/approvals/{ids['approval']}").json()["state"] == "pending"
    assert hub.http.get(f"/goals/{ids['goal']}").json()["title"] == "Learn the piano"
    assert hub.http.get("/sessions/current").json()["stopped"] is False
