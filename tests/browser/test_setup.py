"""The first visit leads through what `annabelle init` asks (UX-01)."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser.browsing import Visit
from hub.hubs import HubProcess


@pytest.mark.req("UX-01", "UX-02")
def test_the_first_visit_asks_for_a_model_and_who_you_are(own_visit: Visit, hub: HubProcess) -> None:
    hub.home.settings_file.unlink(missing_ok=True)
    page = own_visit.sign_in(first=True)
    expect(page.get_by_role("heading", name="Welcome to Annabelle")).to_be_visible()
    expect(page.get_by_role("heading", name="Models", exact=True)).to_be_visible()
    page.get_by_label("What Annabelle calls you").fill("Ada")
    page.get_by_label("Your time zone").fill("Europe/Berlin")
    page.get_by_role("button", name="Keep", exact=True).click()
    expect(page.locator(".toast").get_by_text("Kept.")).to_be_visible()
    kept = hub.home.settings_file.read_text()
    assert "USER_NAME" in kept
    assert "Europe/Berlin" in kept
    page.get_by_label("Your time zone").fill("Nowhere/Land")
    page.get_by_role("button", name="Keep", exact=True).click()
    expect(page.locator(".toast.error")).to_be_visible()
    assert "Nowhere" not in hub.home.settings_file.read_text()
    page.get_by_role("button", name="To the chat", exact=True).click()
    expect(page.get_by_label("Your message")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Your message")).to_be_visible()
