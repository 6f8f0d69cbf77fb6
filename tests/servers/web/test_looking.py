"""What the page is shown as: trees, text, pictures, lists."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from annabelle.core.errors import InvalidArguments, NotAllowed, RetryByModel
from servers.web.browsing import Web
from servers.web.pages import Site


@pytest.mark.req("SRV-BRW")
async def test_a_snapshot_names_what_a_person_sees(web: Web, site: Site) -> None:
    site.pages["/"] = """<title>Shop</title><nav><a href=/cart>Cart</a></nav><h1>Tea</h1><input aria-label=Amount
      value=2><input type=checkbox aria-label=Gift checked><p hidden>hidden</p>"""
    await web("navigate", url=f"{site.url}/")
    shown = await web("snapshot")
    assert (shown.title, shown.url, shown.rest) == ("Shop", f"{site.url}/", None)
    for part in ('link "Cart"', "/url: /cart", 'heading "Tea" [level=1]', 'textbox "Amount"', '"Gift" [checked]'):
        assert part in shown.content
    assert "hidden" not in shown.content
    assert shown.to_text().startswith(f"Page: Shop ({site.url}/)\n")


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_a_long_page_is_cut_and_kept_whole(web: Web, site: Site) -> None:
    site.pages["/"] = "".join(f"<p>paragraph number {number}</p>" for number in range(2000))
    await web("navigate", url=f"{site.url}/")
    for shown in (await web("snapshot"), await web("read"), await web("read", format="html")):
        assert len(shown.content) == 20_000
        assert shown.rest.startswith("temp/results/")
        assert "paragraph number 1999" in (web.workspace / shown.rest).read_text()
    saved = await web("snapshot", filename="pages/shop")
    assert saved.rest == "pages/shop.yml"
    assert "paragraph number 1999" in (web.workspace / "pages/shop.yml").read_text()


@pytest.mark.req("SRV-BRW")
async def test_a_page_too_large_for_a_tree_is_shown_in_parts(web: Web, site: Site) -> None:
    rows = "".join(f"<div><b>{number}</b></div>" for number in range(11_000))
    site.pages["/"] = f"<title>Huge</title><main id=part><button>Here</button></main>{rows}"
    await web("navigate", url=f"{site.url}/")
    with pytest.raises(RetryByModel, match="elements, more than") as refused:
        await web("snapshot")
    assert "selector" in (refused.value.hint or "")
    assert 'button "Here"' in (await web("snapshot", selector="#part")).content
    with pytest.raises(RetryByModel, match="fits this selector"):
        await web("snapshot", selector="#nothing")
    with pytest.raises(RetryByModel, match="valid CSS selector"):
        await web("snapshot", selector="[[")


@pytest.mark.req("SRV-BRW")
async def test_text_and_html_of_the_page_or_an_element(web: Web, site: Site) -> None:
    site.pages["/"] = "<h1>Head</h1><ul aria-label=List><li>One</li></ul><script>var x</script>"
    await web("navigate", url=f"{site.url}/")
    text = (await web("read")).content
    assert "Head" in text
    assert "var x" not in text
    assert "<h1>Head</h1>" in (await web("read", format="html")).content
    ref = await web.ref('list "List"')
    assert (await web("read", format="html", ref=ref)).content == '<ul aria-label="List"><li>One</li></ul>'


@pytest.mark.req("SRV-BRW")
async def test_pictures_are_kept_in_the_workspace(web: Web, site: Site) -> None:
    site.pages["/"] = "<button style='width: 100px; height: 50px'>Red</button><div style='height: 3000px'></div>"
    await web("navigate", url=f"{site.url}/")
    await web("resize", width=800, height=600)
    view = await web("take_screenshot")
    assert view.path.startswith("Images/")
    assert _size(web, view.path) == ("PNG", (800, 600))
    assert view.size == (web.workspace / view.path).stat().st_size
    whole = await web("take_screenshot", fullPage=True, type="jpeg", filename="Images/whole.jpeg")
    kind, (width, height) = _size(web, whole.path)
    assert (kind, width) == ("JPEG", 800)
    assert height > 3000
    again = await web("take_screenshot", filename="Images/whole.jpeg")
    assert again.path != whole.path, "nothing is replaced"
    part = await web("take_screenshot", ref=await web.ref('button "Red"'), element="the button")
    assert _size(web, part.path) == ("PNG", (100, 50))


def _size(web: Web, path: str) -> tuple[str | None, tuple[int, int]]:
    with Image.open(io.BytesIO((web.workspace / path).read_bytes())) as picture:
        return picture.format, picture.size


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_a_picture_of_an_endless_page_has_an_end(web: Web, site: Site) -> None:
    site.pages["/"] = "<div style='height: 900000px'></div>"
    await web("navigate", url=f"{site.url}/")
    await web("resize", width=300, height=300)
    shot = await web("take_screenshot", fullPage=True)
    assert _size(web, shot.path)[1] == (300, 16_000)
    assert "900" in (shot.note or "")


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_nothing_is_saved_outside_the_workspace(web: Web, site: Site) -> None:
    for filename in ("../../outside.png", "/etc/outside.png", "~/.ssh/key.png", "a.exe", "a\x00b/c.png"):
        for name in ("take_screenshot", "snapshot", "console_messages"):
            with pytest.raises((NotAllowed, InvalidArguments)):
                await web(name, filename=filename)


@pytest.mark.req("SRV-BRW")
async def test_resizing_changes_what_the_page_measures(web: Web, site: Site) -> None:
    await web("resize", width=390, height=844)
    found = await web("evaluate", function="() => [innerWidth, innerHeight]")
    assert found.content == "[390,844]"
    with pytest.raises(InvalidArguments):
        await web("resize", width=1e9, height=1)


@pytest.mark.req("SRV-BRW")
async def test_the_console_is_told_by_level(web: Web, site: Site) -> None:
    site.pages["/"] = """<script>console.log('plain \x1b[31m'); console.debug('deep'); console.warn('careful');
      console.error('broken'); undefinedFunction()</script>"""
    done = await web("navigate", url=f"{site.url}/")
    assert "2 new console errors." in done.news
    errors = (await web("console_messages", level="error")).content
    assert "[error] broken" in errors
    assert "undefinedFunction is not defined" in errors
    assert "careful" not in errors
    info = (await web("console_messages")).content
    assert "[info] plain [31m" in info
    assert "deep" not in info
    assert "[debug] deep" in (await web("console_messages", level="debug")).content


@pytest.mark.req("SRV-BRW")
async def test_the_network_is_told_without_secrets(web: Web, site: Site) -> None:
    site.pages |= {
        "/": """<link rel=stylesheet href=/style.css><script>
          fetch('/api?token=abcdef123456', {method: 'POST', headers: {Authorization: 'Bearer hidden'}})</script>""",
        "/style.css": (200, {"Content-Type": "text/css"}, ""),
        "/api": "{}",
    }
    await web("navigate", url=f"{site.url}/")
    await web("evaluate", function="() => fetch('/missing').then(r => r.status)")
    listed = (await web("network_requests")).content
    assert f"GET {site.url}/ [document] 200" in listed
    assert f"POST {site.url}/api?token=«redacted» [fetch]" in listed
    assert "/missing [fetch] 404" in listed
    assert "abcdef" not in listed
    assert "hidden" not in listed
    assert "style.css" not in listed
    saved = await web("network_requests", includeStatic=True, filename="Documents/requests.txt")
    assert "style.css [stylesheet] 200" in (web.workspace / saved.rest).read_text()


@pytest.mark.req("SRV-BRW")
async def test_tabs_are_opened_chosen_and_closed(web: Web, site: Site) -> None:
    site.pages |= {"/1": "<title>One</title>", "/2": "<title>Two</title>"}
    await web("navigate", url=f"{site.url}/1")
    await web("tabs", action="new")
    await web("navigate", url=f"{site.url}/2")
    listed = await web("tabs", action="list")
    assert [(tab.title, tab.current) for tab in listed.tabs] == [("One", False), ("Two", True)]
    assert listed.to_text().splitlines()[1] == f"1 (current): Two ({site.url}/2)"
    await web("tabs", action="select", index=0)
    assert (await web("snapshot")).title == "One"
    left = await web("tabs", action="close")
    assert [tab.title for tab in left.tabs] == ["Two"]
    for wrong in ({"action": "select", "index": 7}, {"action": "close", "index": 7}, {"action": "select"}):
        with pytest.raises((RetryByModel, InvalidArguments)):
            await web("tabs", **wrong)
