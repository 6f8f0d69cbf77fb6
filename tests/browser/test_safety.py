"""Nothing that a model, a tool, a mail or a file name says can run in the page (UX-02)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.browsing import Visit, visiting
from browser.payloads import PAYLOADS
from hub.hubs import HubProcess
from support.scripted_model import Call, Reply, Rule, ScriptedServer

WATCH = "window.hits = 0; window.hit = () => { window.hits++ };"
MADE = """() => [...document.querySelectorAll('main *')].filter((one) =>
  /^(SCRIPT|IFRAME|OBJECT|EMBED|STYLE|LINK|BASE|META|MARQUEE|VIDEO|AUDIO)$/i.test(one.tagName)
  || [...one.attributes].some((a) => a.name.startsWith('on') || /^\\s*(javascript|vbscript|data):/i.test(a.value))
  || (one.tagName === 'IMG' && !one.src.startsWith('blob:'))
).map((one) => one.outerHTML.slice(0, 200))"""


def expect_harmless(visit: Visit) -> None:
    page = visit.page
    for element in page.locator("main a[target=_blank]").all()[:5]:
        assert (element.get_attribute("href") or "").startswith(("https://", "http://", "mailto:"))
    page.locator("main summary").evaluate_all("(all) => all.forEach((one) => one.click())")
    page.mouse.move(300, 300)
    assert page.evaluate(MADE) == []
    assert page.evaluate("window.hits") == 0
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.fixture(scope="module")
def shared_visit(browser: Browser, hub: HubProcess) -> Iterator[Visit]:
    with visiting(browser, hub) as made:
        made.context.add_init_script(WATCH)
        yield made


def say(page: Page, text: str) -> None:
    page.get_by_label("Your message").fill(text)
    page.get_by_role("button", name="Send").click()


def test_there_are_at_least_a_hundred_payloads() -> None:
    assert len(set(PAYLOADS)) >= 100


@pytest.mark.req("UX-02")
def test_an_answer_full_of_script_is_only_text(visit: Visit, model: ScriptedServer) -> None:
    model.rules(Rule(match="Attack", reply=Reply(text="\n\n".join(PAYLOADS) + "\n\nThe end.", chunks=7)))
    page = visit.sign_in()
    say(page, "Attack: " + " ".join(PAYLOADS[:40]))
    expect(page.locator(".message.agent:not(.live)").get_by_text("The end.")).to_be_visible()
    expect_harmless(visit)
    page.reload()
    expect(page.locator(".message.agent").get_by_text("The end.")).to_be_visible()
    expect_harmless(visit)


@pytest.mark.req("UX-02")
def test_an_image_of_another_machine_is_only_a_link(visit: Visit, model: ScriptedServer) -> None:
    model.rules(Rule(match="Show", reply=Reply(text="![see](https://other.example/seen.png)")))
    page = visit.sign_in()
    say(page, "Show it")
    link = page.locator(".message.agent:not(.live)").get_by_role("link", name="see", exact=True)
    expect(link).to_have_attribute("href", "https://other.example/seen.png")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    expect_harmless(visit)


@pytest.mark.req("UX-02")
def test_calls_and_file_names_full_of_script_are_only_text(visit: Visit, model: ScriptedServer) -> None:
    listing = [Call(name="filer_read_file", arguments={"path": one}) for one in PAYLOADS[:12]]
    model.rules(Rule(match="Look", results=0, reply=Reply(tool_calls=listing)))
    page = visit.sign_in()
    named = "<img src=x onerror=hit()>.png"
    page.locator("input[type=file]").set_input_files({"name": named, "mimeType": "image/png", "buffer": b"no image"})
    expect(page.locator(".attached .badge")).to_have_text("_img src_x onerror_hit___.png")
    say(page, "Look")
    expect(page.get_by_text("12 tool calls in a row failed")).to_be_visible()
    expect(page.locator(".tool")).to_have_count(12)
    expect(page.locator(".message.own").last).to_contain_text("Download _img src_x onerror_hit___.png")
    expect_harmless(visit)


@pytest.mark.req("UX-02", "POL-03")
def test_what_nobody_sees_in_a_call_is_spelled_out_before_a_yes(visit: Visit, model: ScriptedServer) -> None:
    hidden = "plan\u202egpj.\u200btxt"
    (visit.hub.home.workspace / hidden).write_text("hidden")
    delete = Call(name="filer_delete_file", arguments={"path": hidden})
    model.rules(Rule(match="Tidy", results=0, reply=Reply(tool_calls=[delete])))
    page = visit.sign_in()
    say(page, "Tidy up")
    expect(page.locator(".question .pairs")).to_have_text(r"pathplan\u202egpj.\u200btxt")
    page.get_by_role("button", name="Deny").click()
    expect(page.locator(".question")).to_have_count(0)
