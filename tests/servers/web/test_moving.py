"""Going from page to page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from annabelle.core.errors import InvalidArguments, NotAllowed, RetryByModel, ToolTimeout, Unavailable
from servers.web.browsing import Web
from servers.web.pages import Site
from support.timing import seconds


@pytest.mark.req("SRV-BRW")
async def test_a_page_is_opened_and_told_by_title_and_address(web: Web, site: Site) -> None:
    site.pages["/"] = "<title>Hello\x07 there</title><h1>Hi</h1>"
    done = await web("navigate", url=f"{site.url}/")
    assert (done.title, done.url) == ("Hello there", f"{site.url}/")
    assert "/" in site.asked
    assert done.to_text().splitlines()[0] == "Opened the page."


@pytest.mark.req("SRV-BRW")
async def test_a_name_is_reached_through_the_gate(web: Web, site: Site) -> None:
    site.pages["/"] = "<title>By name</title>"
    done = await web("navigate", url=f"http://site.test:{site.port}/?a=1#b")
    assert done.title == "By name"
    assert any(f"Host: site.test:{site.port}" in head and "GET /?a=1 " in head for head in site.heads)


@pytest.mark.req("SRV-BRW")
async def test_back_goes_to_the_page_before(web: Web, site: Site) -> None:
    site.pages |= {"/1": "<title>One</title>", "/2": "<title>Two</title>"}
    await web("navigate", url=f"{site.url}/1")
    await web("navigate", url=f"{site.url}/2")
    assert (await web("navigate_back")).title == "One"


@pytest.mark.req("SRV-BRW")
async def test_there_is_nothing_before_the_first_page(web: Web) -> None:
    with pytest.raises(RetryByModel, match="no page before"):
        await web("navigate_back")


@pytest.mark.req("SRV-BRW")
async def test_an_error_of_the_site_is_mentioned(web: Web, site: Site) -> None:
    done = await web("navigate", url=f"{site.url}/nothing")
    assert "answered 404" in done.did


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_only_web_addresses_are_opened(make_web: Callable[..., Web]) -> None:
    web = make_web()
    for url in (
        "file:///etc/passwd",
        "chrome://version",
        "chrome://crash",
        "view-source:http://example.com/",
        "javascript:alert(1)",
        "data:text/html,<h1>x</h1>",
        "ftp://example.com/",
        "blob:http://example.com/1",
        "http://user:password@example.com/",
        "http://",
        "http://[::1",
        "http://example.com:99999999/",
        "https://exa\u202emple.com/",
        "https://a b/",
        "https://a\r\nHost: b/",
        "   ",
    ):
        with pytest.raises(InvalidArguments):
            await web("navigate", url=url)


@pytest.mark.req("SRV-BRW")
async def test_a_redirect_in_a_circle_ends(web: Web, site: Site) -> None:
    site.pages["/round"] = (302, {"Location": "/round"}, "")
    with pytest.raises(Unavailable, match="in a circle"):
        await web("navigate", url=f"{site.url}/round")
    site.pages["/"] = "<title>After</title>"
    assert (await web("navigate", url=f"{site.url}/")).title == "After"


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_a_site_that_never_answers_is_given_up(web: Web, site: Site) -> None:
    site.pages |= {"/hang": "hang", "/": "<title>After</title>"}
    async with web.hasty(navigation=0.5):
        with pytest.raises(ToolTimeout, match="did not answer"):
            await web("navigate", url=f"{site.url}/hang")
    assert (await web("navigate", url=f"{site.url}/")).title == "After"


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_a_cancelled_navigation_leaves_the_tab_usable(web: Web, site: Site) -> None:
    site.pages |= {"/hang": "hang", "/": "<title>After</title>"}
    opening = asyncio.ensure_future(web("navigate", url=f"{site.url}/hang"))
    async with asyncio.timeout(seconds(10)):
        await site.hanging.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert (await web("navigate", url=f"{site.url}/")).title == "After"


@pytest.mark.req("SRV-BRW")
async def test_waiting_ends_when_a_text_appears_or_goes(web: Web, site: Site) -> None:
    site.pages["/"] = """<p id=p>Loading</p><script>
      setTimeout(() => { document.getElementById('p').textContent = 'Ready' }, 300)</script>"""
    await web("navigate", url=f"{site.url}/")
    await web("wait_for", text="Ready")
    assert "Ready" in (await web("snapshot")).content
    site.pages["/"] = "<p id=p>Loading</p><script>setTimeout(() => document.getElementById('p').remove(), 300)</script>"
    await web("navigate", url=f"{site.url}/")
    await web("wait_for", textGone="Loading")
    assert "Loading" not in (await web("snapshot")).content


@pytest.mark.req("SRV-BRW")
async def test_waiting_is_bounded_and_needs_something_to_wait_for(web: Web, site: Site) -> None:
    with pytest.raises(ToolTimeout, match="did not appear within"):
        await web("wait_for", text="never", time=0.3)
    with pytest.raises(InvalidArguments, match="what to wait for"):
        await web("wait_for")
    with pytest.raises(InvalidArguments):
        await web("wait_for", time=1e9)
    assert (await web("wait_for", time=0.01)).did == "Waited."


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_two_calls_at_once_happen_one_after_the_other(web: Web, site: Site) -> None:
    site.pages |= {f"/{number}": f"<title>{number}</title>" for number in range(4)}
    done = await asyncio.gather(*(web("navigate", url=f"{site.url}/{number}") for number in range(4)))
    assert [one.title for one in done] == ["0", "1", "2", "3"]


@pytest.mark.req("SRV-BRW")
async def test_a_private_address_is_refused_with_a_way_out(web: Web, private: Site) -> None:
    with pytest.raises(NotAllowed, match="private or local network") as refused:
        await web("navigate", url=f"{private.url}/")
    assert "PRIVATE_HOSTS_ALLOWED" in (refused.value.hint or "")
    assert private.connections == 0
