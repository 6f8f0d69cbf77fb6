"""A browser is signed in by a link that works once, and shows nobody anything without it (UX-02)."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx2 as httpx
import pytest
from playwright.sync_api import Browser, expect

from annabelle.core.messages import now
from browser.browsing import Visit, visiting
from hub.hubs import HubProcess, wait_for
from support.timing import seconds

SPENT = "This link was used before or has expired. annabelle open makes another."


@pytest.fixture
def visit(own_visit: Visit) -> Visit:
    return own_visit


@pytest.mark.req("UX-02")
def test_the_address_alone_shows_how_to_get_a_link(visit: Visit) -> None:
    visit.page.goto(f"{visit.hub.url}/")
    expect(visit.page.get_by_text("annabelle open")).to_be_visible()
    assert visit.foreign == []


@pytest.mark.req("UX-02")
def test_a_link_signs_in_once_and_its_session_ends_with_the_token(browser: Browser, visit: Visit) -> None:
    hub = visit.hub
    link = hub.http.post("/sessions/links").json()["path"]
    visit.page.goto(f"{hub.url}{link}")
    expect(visit.page.get_by_role("navigation", name="Views")).to_be_visible()
    assert "link=" not in visit.page.url
    (cookie,) = visit.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    with visiting(browser, hub) as other:
        other.page.goto(f"{hub.url}{link}")
        expect(other.page.get_by_role("alert")).to_have_text(SPENT)
        assert "link=" not in other.page.url
    (token,) = [one["name"] for one in hub.http.get("/tokens").json()["tokens"] if one["name"].startswith("page-")]
    hub.http.post(f"/tokens/{token}/revoke")
    expect(visit.page.get_by_text("annabelle open", exact=True)).to_be_visible()


@pytest.mark.req("UX-02")
def test_one_half_of_a_session_is_worth_nothing(visit: Visit) -> None:
    visit.sign_in()
    (cookie,) = visit.context.cookies()
    key = visit.page.evaluate("localStorage.getItem('annabelle-key')")
    cookies = {cookie["name"]: cookie["value"]}

    def ask(cookies: dict[str, str], headers: dict[str, str]) -> int:
        return httpx.get(f"{visit.hub.url}/threads", cookies=cookies, headers=headers).status_code

    both = {"X-Annabelle-Page": key}
    assert ask(cookies, both) == 200
    assert (ask(cookies, {}), ask({}, both)) == (401, 401)
    assert ask(cookies, both | {"Origin": "http://evil.example"}) == 403
    made = httpx.post(f"{visit.hub.url}/sessions/links", cookies=cookies, headers=both)
    assert made.status_code == 403, "the page cannot make links"


@pytest.mark.req("UX-02")
def test_the_page_is_served_with_a_strict_policy_and_runs_nothing_of_its_own_making(hub: HubProcess) -> None:
    served = httpx.get(f"{hub.url}/page/")
    policy = served.headers["Content-Security-Policy"]
    assert dict(one.strip().split(" ", 1) for one in policy.split(";")) == {
        **dict.fromkeys(("default-src", "form-action", "base-uri", "frame-ancestors", "trusted-types"), "'none'"),
        **dict.fromkeys(("script-src", "style-src", "connect-src"), "'self'"),
        "img-src": "'self' blob:",
        "require-trusted-types-for": "'script'",
    }
    assert httpx.get(f"{hub.url}/page/../hub/app.py").status_code in (401, 404)
    assert httpx.get(f"{hub.url}/page/%2e%2e/hub/app.py").status_code in (401, 404)


@pytest.mark.req("UX-02")
def test_a_link_signs_one_browser_in_and_many_links_as_many(hub: HubProcess) -> None:
    def open_link(code: str) -> int:
        return httpx.post(f"{hub.url}/sessions", json={"code": code}, timeout=seconds(30)).status_code

    codes = [hub.http.post("/sessions/links").json()["path"].partition("=")[2] for _ in range(9)]
    with ThreadPoolExecutor(50) as pool:
        assert sorted(pool.map(open_link, [codes[0]] * 50)) == [200] + [401] * 49
        assert list(pool.map(open_link, codes[1:])) == [200] * 8


@pytest.mark.req("UX-02")
def test_signing_out_clears_the_cookie(visit: Visit) -> None:
    page = visit.sign_in()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("dialog").get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("annabelle open", exact=True)).to_be_visible()
    assert visit.context.cookies() == []
    assert page.evaluate("localStorage.getItem('annabelle-key')") is None


@pytest.mark.req("UX-02")
def test_a_session_ends_after_thirty_days_whatever_the_browser_kept(visit: Visit, hub: HubProcess) -> None:
    visit.sign_in()
    (cookie,) = visit.context.cookies()
    key = visit.page.evaluate("localStorage.getItem('annabelle-key')")

    def ask() -> int:
        own = {cookie["name"]: cookie["value"]}
        return httpx.get(f"{hub.url}/threads", cookies=own, headers={"X-Annabelle-Page": key}).status_code

    users = json.loads(hub.home.users_file.read_text())
    newest = max(users["tokens"], key=lambda one: one["createdAt"])
    for days, answer in ((29, 200), (31, 401)):
        newest["createdAt"] = (now() - timedelta(days=days)).isoformat()
        hub.home.users_file.write_text(json.dumps(users))
        wait_for(lambda answer=answer: ask() == answer, f"{answer} after {days} days")
