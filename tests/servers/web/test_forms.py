"""Forms, dialogs and functions that run in the page."""

from __future__ import annotations

import json

import pytest

from annabelle.core.errors import InvalidArguments, NotAllowed, NotFound, RetryByModel, ToolTimeout
from servers.web.browsing import Web
from servers.web.pages import Site

FORM = """<form><input aria-label=Name name=name><textarea aria-label=Note name=note></textarea>
  <input type=checkbox aria-label=News name=news checked><input type=checkbox aria-label=Terms name=terms>
  <input type=radio name=size value=s aria-label=Small><input type=radio name=size value=l aria-label=Large>
  <select aria-label=Country name=country><option value=de>Germany<option value=at>Austria</select>
  <input type=range aria-label=Volume name=volume min=0 max=100></form>"""
READ = "() => Object.fromEntries(new FormData(document.forms[0]))"


@pytest.mark.req("SRV-BRW")
async def test_a_form_is_filled_at_once(web: Web, site: Site) -> None:
    site.pages["/"] = FORM
    await web("navigate", url=f"{site.url}/")
    fields = [
        ("Name", "textbox", "Ä 'quoted' \"name\"", 'textbox "Name"'),
        ("Note", "textbox", "two\nlines", 'textbox "Note"'),
        ("News", "checkbox", "false", 'checkbox "News"'),
        ("Terms", "checkbox", "true", 'checkbox "Terms"'),
        ("Size", "radio", "Large", 'radio "Large"'),
        ("Country", "combobox", "Austria", 'combobox "Country"'),
        ("Volume", "slider", "70", 'slider "Volume"'),
    ]
    given = [
        {"name": name, "type": kind, "ref": await web.ref(line), "value": value} for name, kind, value, line in fields
    ]
    done = await web("fill_form", fields=given)
    assert done.did == "Filled 7 of 7 fields."
    found = json.loads((await web("evaluate", function=READ)).content)
    assert found == {
        "name": "Ä 'quoted' \"name\"",
        "note": "two\nlines",
        "terms": "on",
        "size": "l",
        "country": "at",
        "volume": "70",
    }


@pytest.mark.req("SRV-BRW")
async def test_a_field_that_does_not_fit_is_named_and_what_came_before_is_said(web: Web, site: Site) -> None:
    site.pages["/"] = FORM
    await web("navigate", url=f"{site.url}/")
    name, terms = await web.ref('textbox "Name"'), await web.ref('checkbox "Terms"')
    with pytest.raises(RetryByModel, match=r"Terms \(\w+\): A checkbox takes true or false") as refused:
        await web(
            "fill_form",
            fields=[
                {"name": "Name", "type": "textbox", "ref": name, "value": "A"},
                {"name": "Terms", "type": "checkbox", "ref": terms, "value": "maybe"},
            ],
        )
    assert "1 of 2 fields" in (refused.value.hint or "")
    with pytest.raises(RetryByModel, match="e999"):
        await web("fill_form", fields=[{"name": "x", "type": "textbox", "ref": "e999", "value": "A"}])
    with pytest.raises(InvalidArguments):
        await web("fill_form", fields=[])
    with pytest.raises(InvalidArguments):
        await web("fill_form", fields=[{"name": "x", "type": "password", "ref": name, "value": "A"}])


@pytest.mark.req("SRV-BRW")
async def test_options_are_selected_by_value_or_label(web: Web, site: Site) -> None:
    site.pages["/"] = """<form><select name=a aria-label=One><option value=1>First<option value=2>Second</select>
      <select multiple name=b aria-label=Many><option>x<option>y<option>z</select></form><p role=listbox
      aria-label=Fake>fake</p>"""
    await web("navigate", url=f"{site.url}/")
    one = await web.ref('combobox "One"')
    await web("select_option", ref=one, values=["Second"], element="list")
    await web("select_option", ref=await web.ref('listbox "Many"'), values=["x", "z"])
    found = await web("evaluate", function="() => [...new FormData(document.forms[0])].map(pair => pair.join())")
    assert json.loads(found.content) == ["a,2", "b,x", "b,z"]
    with pytest.raises(RetryByModel, match="no such option") as refused:
        await web("select_option", ref=one, values=["Third"])
    assert "First, Second" in (refused.value.hint or "")
    with pytest.raises(RetryByModel, match="no drop-down list"):
        await web("select_option", ref=await web.ref('"Fake"'), values=["x"])


@pytest.mark.req("SRV-BRW")
async def test_files_of_the_workspace_are_uploaded(web: Web, site: Site) -> None:
    site.pages["/"] = """<input type=file multiple aria-label=Files onchange="names.textContent =
      [...this.files].map(file => file.name + ' ' + file.size).join()"><p id=names></p>"""
    (web.workspace / "Documents").mkdir(parents=True, exist_ok=True)
    (web.workspace / "Documents/ä.txt").write_text("four")
    (web.workspace / "Documents/b.txt").write_text("b")
    await web("navigate", url=f"{site.url}/")
    ref = await web.ref("Files")
    done = await web("click", ref=ref)
    assert any("browser_file_upload" in line for line in done.news)
    await web("file_upload", paths=["Documents/ä.txt", "Documents/b.txt"])
    assert "ä.txt 4,b.txt 1" in (await web("read")).content
    await web("file_upload", paths=["Documents/b.txt"], ref=ref)
    assert "\nb.txt 1" in f"\n{(await web('read')).content.strip()}"


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_only_files_of_the_workspace_are_uploaded(web: Web, site: Site) -> None:
    site.pages["/"] = "<input type=file aria-label=File>"
    await web("navigate", url=f"{site.url}/")
    with pytest.raises(RetryByModel, match="does not ask for files"):
        await web("file_upload", paths=["a.txt"])
    await web("click", ref=await web.ref("File"))
    for path in ("/etc/passwd", "../../config/settings.env", "~/.ssh/id_rsa"):
        with pytest.raises(NotAllowed):
            await web("file_upload", paths=[path])
    with pytest.raises(NotFound):
        await web("file_upload", paths=["no-such-file.txt"])
    assert (await web("file_upload")).did == "Gave no files."
    assert (await web("evaluate", function="() => document.querySelector('input').files.length")).content == "0"


@pytest.mark.req("SRV-BRW")
async def test_a_dialog_is_held_until_it_is_answered(web: Web, site: Site) -> None:
    site.pages["/"] = """<button onclick="out.textContent = String(confirm('Sure?\u202e'))">Confirm</button>
      <button onclick="out.textContent = prompt('Name?')">Prompt</button><p id=out></p>"""
    await web("navigate", url=f"{site.url}/")
    confirm, prompt = await web.ref('button "Confirm"'), await web.ref('button "Prompt"')
    done = await web("click", ref=confirm)
    assert done.dialog == 'A dialog is open (confirm): "Sure?".'
    assert "browser_handle_dialog" in done.to_text()
    for name, arguments in (("snapshot", {}), ("click", {"ref": confirm}), ("take_screenshot", {})):
        with pytest.raises(RetryByModel, match="dialog is open"):
            await web(name, **arguments)
    assert "document" in (await web("network_requests")).content, "this asks the page nothing"
    assert (await web("tabs", action="select", index=0)).tabs[0].current
    assert (await web("handle_dialog", accept=False)).dialog is None
    assert (await web("read", ref=await web.ref("paragraph"))).content == "false"
    await web("click", ref=prompt)
    await web("handle_dialog", accept=True, promptText="Ä")
    assert (await web("read", ref=await web.ref("paragraph"))).content == "Ä"
    with pytest.raises(RetryByModel, match="No dialog is open"):
        await web("handle_dialog", accept=True)


@pytest.mark.req("SRV-BRW")
async def test_a_function_runs_in_the_page_and_gives_json(web: Web, site: Site) -> None:
    site.pages["/"] = (200, {"Content-Security-Policy": "script-src 'none'"}, "<title>T</title><button>Go</button>")
    await web("navigate", url=f"{site.url}/")

    async def evaluate(function: str, **more: str) -> str:
        return (await web("evaluate", function=function, **more)).content

    assert await evaluate("() => ({a: [1, 'ü'], b: null})") == '{"a":[1,"ü"],"b":null}'
    assert await evaluate("document.title") == '"T"'
    assert await evaluate("(element) => element.textContent", ref=await web.ref('button "Go"'), element="it") == '"Go"'
    assert await evaluate("async () => { await null; return 5n }") == "5"
    assert await evaluate("() => undefined") == "undefined"
    assert await evaluate("() => 1 // one") == "1"
    with pytest.raises(RetryByModel, match="TypeError: no"):
        await evaluate("() => { throw new TypeError('no') }")
    with pytest.raises(RetryByModel, match="not valid JavaScript"):
        await evaluate("() => {")
    assert await evaluate("() => typeof require + typeof process") == '"undefinedundefined"', "it is not the driver"


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_a_large_result_is_cut_and_kept(web: Web) -> None:
    found = await web("evaluate", function="() => 'x'.repeat(5000000)")
    assert len(found.content) == 10_000
    assert (web.workspace / found.rest).stat().st_size == 500_000, "a larger one never leaves the page"


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_a_function_without_end_is_stopped_and_the_page_lives(web: Web, site: Site) -> None:
    site.pages["/"] = "<title>Alive</title>"
    await web("navigate", url=f"{site.url}/")
    async with web.hasty(action=0.3):
        with pytest.raises(ToolTimeout, match="was stopped"):
            await web("evaluate", function="() => { while (true) {} }")
    assert (await web("evaluate", function="() => document.title")).content == '"Alive"'
