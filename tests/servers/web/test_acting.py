"""Mouse and keys, as the page sees them."""

from __future__ import annotations

import asyncio
import logging

import pytest

from annabelle.core.errors import InvalidArguments, RetryByModel
from servers.web.browsing import Web
from servers.web.pages import Site

LOG = """<pre id=log></pre><script>
  const log = text => { document.getElementById('log').textContent += text + ';' }</script>"""


async def _logged(web: Web) -> str:
    return (await web("evaluate", function="() => document.getElementById('log').textContent")).content.strip('"')


@pytest.mark.req("SRV-BRW")
async def test_a_click_reaches_the_element_with_button_and_keys(web: Web, site: Site) -> None:
    site.pages["/"] = f"""{LOG}<button onclick="log('left ' + event.shiftKey)" ondblclick="log('double')"
      oncontextmenu="log('right'); return false">Go</button>"""
    await web("navigate", url=f"{site.url}/")
    ref = await web.ref('button "Go"')
    done = await web("click", ref=ref, element="the Go button", modifiers=["Shift"])
    assert done.did == f"Clicked the Go button ({ref})."
    await web("click", ref=ref, button="right")
    await web("click", ref=ref, doubleClick=True)
    assert await _logged(web) == "left true;right;left false;left false;double;"


@pytest.mark.req("SRV-BRW")
async def test_a_click_that_opens_a_page_tells_the_new_page(web: Web, site: Site) -> None:
    site.pages |= {"/": "<a href=/next>Next</a>", "/next": "<title>Next page</title>"}
    await web("navigate", url=f"{site.url}/")
    done = await web("click", ref=await web.ref('link "Next"'))
    assert (done.title, done.url) == ("Next page", f"{site.url}/next")


@pytest.mark.req("SRV-BRW")
async def test_frames_and_shadow_trees_are_seen_and_used(web: Web, site: Site) -> None:
    site.pages |= {
        "/": """<iframe src=/inner></iframe><div id=host></div><p id=out></p><script>
          const root = host.attachShadow({mode: 'open'});
          root.innerHTML = '<button>Shadow</button>';
          root.querySelector('button').onclick = () => { out.textContent = 'shadow clicked' }</script>""",
        "/inner": "<button onclick=\"this.textContent = 'frame clicked'\">Inner</button>",
    }
    await web("navigate", url=f"{site.url}/")
    await web("wait_for", text="Inner")
    await web("click", ref=await web.ref('button "Inner"'))
    await web("click", ref=await web.ref('button "Shadow"'))
    tree = (await web("snapshot")).content
    assert "frame clicked" in tree
    assert "shadow clicked" in tree


@pytest.mark.req("SRV-BRW")
async def test_hovering_opens_what_opens_so(web: Web, site: Site) -> None:
    site.pages["/"] = f"{LOG}<button onmouseenter=\"log('over')\">Menu</button>"
    await web("navigate", url=f"{site.url}/")
    await web("hover", ref=await web.ref('button "Menu"'))
    assert (await _logged(web)).startswith("over;")


@pytest.mark.req("SRV-BRW")
async def test_an_element_is_dragged_onto_another(web: Web, site: Site) -> None:
    site.pages[
        "/"
    ] = f"""{LOG}<button draggable=true ondragstart="event.dataTransfer.setData('text', 'card')">Card</button>
      <div role=region aria-label=Bin style="height: 100px" ondragover="event.preventDefault()"
      ondrop="log(event.dataTransfer.getData('text'))">Bin</div>"""
    await web("navigate", url=f"{site.url}/")
    start = await web.ref('button "Card"')
    end = await web.ref('region "Bin"')
    await web("drag", startElement="card", startRef=start, endElement="bin", endRef=end)
    assert await _logged(web) == "card;"


@pytest.mark.req("SRV-BRW")
async def test_text_is_typed_at_once_or_key_by_key_and_sent(web: Web, site: Site) -> None:
    site.pages |= {
        "/": f"""{LOG}<form action=/found><input name=q aria-label=Search onkeydown="log(event.key)"></form>""",
        "/found": lambda path: f"<title>{path}</title>",
    }
    await web("navigate", url=f"{site.url}/")
    ref = await web.ref('textbox "Search"')
    await web("type", ref=ref, text="first")
    await web("type", ref=ref, text="ab", slowly=True)
    assert await _logged(web) == "a;b;"
    done = await web("type", ref=ref, text="grüße & more", submit=True)
    assert done.title == "/found?q=gr%C3%BC%C3%9Fe+%26+more"


@pytest.mark.req("SRV-BRW")
async def test_keys_reach_the_page(web: Web, site: Site) -> None:
    site.pages["/"] = f"{LOG}<script>onkeydown = event => log((event.ctrlKey ? 'ctrl ' : '') + event.key)</script>"
    await web("navigate", url=f"{site.url}/")
    for key in ("Escape", "Control+b"):
        await web("press_key", key=key)
    assert await _logged(web) == "Escape;ctrl Control;ctrl b;"
    with pytest.raises(RetryByModel, match="no such key"):
        await web("press_key", key="NoSuchKey")


@pytest.mark.req("SRV-BRW")
async def test_a_letter_no_keyboard_has_is_entered_all_the_same(web: Web, site: Site) -> None:
    site.pages["/"] = "<input aria-label=Field autofocus>"
    await web("navigate", url=f"{site.url}/")
    await web("click", ref=await web.ref('textbox "Field"'))
    await web("press_key", key="ß")
    assert (await web("evaluate", function="() => document.querySelector('input').value")).content == '"ß"'


@pytest.mark.req("SRV-BRW")
async def test_a_ref_that_is_none_asks_for_a_new_snapshot(web: Web, site: Site) -> None:
    site.pages["/"] = "<button>Go</button>"
    await web("navigate", url=f"{site.url}/")
    await web("snapshot")
    for ref in ("e999", "f99e1", "button", "e1 >> css=body", "css=body"):
        with pytest.raises(RetryByModel) as refused:
            await web("click", ref=ref)
        assert "browser_snapshot" in (refused.value.hint or "")
    for ref in ("", "e" * 41):
        with pytest.raises(InvalidArguments):
            await web("click", ref=ref)


@pytest.mark.req("SRV-BRW")
async def test_a_ref_of_an_earlier_page_is_not_taken_for_another_element(web: Web, site: Site) -> None:
    site.pages |= {"/1": f"<button>Cancel</button>{LOG}", "/2": f"<button onclick=\"log('bought')\">Buy</button>{LOG}"}
    await web("navigate", url=f"{site.url}/1")
    ref = await web.ref('button "Cancel"')
    await web("navigate", url=f"{site.url}/2")
    await web("snapshot")
    with pytest.raises(RetryByModel, match="no longer"):
        await web("click", ref=ref)
    assert await _logged(web) == ""


@pytest.mark.req("SRV-BRW")
async def test_an_element_that_is_gone_or_covered_is_said_to_be(web: Web, site: Site) -> None:
    site.pages["/"] = """<button id=a>Gone</button><button id=b>Covered</button>
      <div id=cover style="position: fixed; inset: 0; display: none"></div>"""
    await web("navigate", url=f"{site.url}/")
    gone, covered = await web.ref('button "Gone"'), await web.ref('button "Covered"')
    await web("evaluate", function="() => { a.remove(); cover.style.display = 'block' }")
    with pytest.raises(RetryByModel, match="no longer"):
        await web("click", ref=gone)
    async with web.hasty(action=0.5):
        with pytest.raises(RetryByModel, match="another element covers it"):
            await web("click", ref=covered)


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_a_cancelled_click_leaves_the_page_usable(web: Web, site: Site) -> None:
    site.pages["/"] = f"""<button id=a onclick="log('late')" disabled>Wait</button>{LOG}"""
    await web("navigate", url=f"{site.url}/")
    ref = await web.ref('button "Wait"')
    async with web.hasty(action=5):
        clicking = asyncio.ensure_future(web("click", ref=ref))
        await asyncio.wait([clicking], timeout=0.3)
        assert not clicking.done(), "it waits for the button to be enabled"
        clicking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await clicking
        assert await _logged(web) == "", "the next call came after the end of the click"
        await web("evaluate", function="() => { a.disabled = false }")
        assert await _logged(web) == "", "and nothing is clicked any more"
        await web("click", ref=ref)
    assert await _logged(web) == "late;"


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_what_is_typed_is_in_no_log_and_no_error(web: Web, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    site.pages["/"] = "<button>No field</button><input type=password aria-label=Password>"
    await web("navigate", url=f"{site.url}/")
    with pytest.raises(RetryByModel) as refused:
        await web("type", ref=await web.ref('button "No field"'), text="hunter2-secret")
    done = await web("type", ref=await web.ref('textbox "Password"'), text="hunter2-secret")
    tree = (await web("snapshot")).content
    assert "hunter2" not in caplog.text
    assert "hunter2" not in f"{refused.value.message} {refused.value.hint} {refused.value.__cause__}"
    assert "hunter2" not in done.to_text()
    assert "hunter2" not in tree, "nor is a password field read back"
    assert (await web("evaluate", function="() => document.querySelector('input').value")).content == '"hunter2-secret"'
