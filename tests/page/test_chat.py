"""Talking on the page: words appear as they come, calls open, questions are answered in place (UX-02)."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from page.browsing import Visit
from support.scripted_model import Reply, Rule, ScriptedServer


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
