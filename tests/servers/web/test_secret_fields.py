"""A secret of the vault is typed into pages of its own sites and into no others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from annabelle.core.errors import NotAllowed, RetryByModel, ToolTimeout
from annabelle.servers.kit.call import Call, enter_call
from annabelle.servers.web.navigate import same_site
from servers.web.browsing import Web
from servers.web.pages import Site

SECRET = "Wolmar-3381-Teek"
FORM = "<form><input aria-label=Word name=word></form>"
READ = "() => document.forms[0].word.value"


@pytest.fixture(autouse=True)
def nobody_calls_afterwards() -> Iterator[None]:
    yield
    enter_call(Call())


def bound_to(*sites: str) -> None:
    enter_call(Call(caller="agent", secrets=(SECRET,), secret_sites={SECRET: sites}))


async def fill(web: Web, ref: str, tool: str) -> None:
    if tool == "type":
        await web("type", ref=ref, text=SECRET)
    else:
        await web("fill_form", fields=[{"name": "Word", "type": "textbox", "ref": ref, "value": SECRET}])


@pytest.mark.req("POL-06", "SRV-BRW")
@pytest.mark.parametrize("tool", ["type", "fill_form"])
async def test_a_secret_is_typed_into_its_own_site_alone(web: Web, site: Site, tool: str) -> None:
    site.pages["/"] = FORM
    await web("navigate", url=f"{site.url}/")
    ref = await web.ref('textbox "Word"')
    bound_to("https://bank.example", f"http://site.test:{site.port}")
    with pytest.raises(NotAllowed, match=r"belongs to https://bank\.example"):
        await fill(web, ref, tool)
    assert (await web("evaluate", function=READ)).content == '""'
    bound_to(f"{site.url}/login")
    await fill(web, ref, tool)
    assert SECRET in (await web("evaluate", function=READ)).content


@pytest.mark.req("POL-06", "SRV-BRW")
async def test_the_host_counts_when_it_is_typed_not_when_the_page_was_looked_at(web: Web, site: Site) -> None:
    site.pages["/"] = FORM
    bound_to(site.url)
    await web("navigate", url=f"{site.url}/")
    ref = await web.ref('textbox "Word"')
    await web("evaluate", function=f"() => {{ location.href = 'http://site.test:{site.port}/' }}")
    with pytest.raises((NotAllowed, RetryByModel, ToolTimeout)):  # it may go in the middle of looking it up
        await web("type", ref=ref, text=SECRET)
    with pytest.raises(NotAllowed):
        await web("type", ref=await web.ref('textbox "Word"'), text=SECRET)
    assert (await web("evaluate", function=READ)).content == '""'


@pytest.mark.req("POL-06", "SRV-BRW")
async def test_a_frame_of_a_stranger_gets_no_secret(web: Web, site: Site) -> None:
    site.pages["/"] = f"<iframe src='http://site.test:{site.port}/frame'></iframe>"
    site.pages["/frame"] = FORM
    await web("navigate", url=f"{site.url}/")
    ref = await web.ref('textbox "Word"')
    for sites in ((site.url,), (f"http://site.test:{site.port}",)):
        bound_to(*sites)
        with pytest.raises(NotAllowed):
            await web("type", ref=ref, text=SECRET)
    bound_to(site.url, f"http://site.test:{site.port}")
    await web("type", ref=ref, text=SECRET)


@pytest.mark.req("POL-06")
async def test_a_secret_is_not_typed_key_by_key(web: Web, site: Site) -> None:
    site.pages["/"] = FORM
    await web("navigate", url=f"{site.url}/")
    bound_to(site.url)
    with pytest.raises(RetryByModel, match="at once"):
        await web("type", ref=await web.ref('textbox "Word"'), text=SECRET, slowly=True)


@pytest.mark.req("POL-06")
@pytest.mark.parametrize(
    ("page", "site", "same"),
    [
        ("https://bank.example/x?y#z", "https://bank.example/login", True),
        ("https://www.bank.example/", "https://bank.example", True),
        ("https://BANK.example./", "bank.example/login", True),
        ("http://bank.example/", "bank.example", True),
        ("https://bank.example/", "http://bank.example", True),
        ("https://xn--bcher-kva.example/", "https://bücher.example", True),
        ("http://10.0.0.1:8080/", "http://10.0.0.1:8080", True),
        ("http://bank.example/", "https://bank.example", False),
        ("https://bank.example:8443/", "https://bank.example", False),
        ("https://evil.bank.example/", "https://bank.example", False),
        ("https://bank.example.evil.example/", "https://bank.example", False),
        ("https://bank.example@evil.example/", "https://bank.example", False),
        ("https://evilbank.example/", "https://bank.example", False),
        ("about:blank", "https://bank.example", False),
        ("blob:https://bank.example/1", "https://bank.example", False),
        ("https://bank.example/", "", False),
        ("https://bank.example:x/", "https://bank.example", False),
    ],
)
def test_which_pages_are_of_a_site(page: str, site: str, same: bool) -> None:
    assert same_site(page, site) is same
