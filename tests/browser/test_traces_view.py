"""A turn as a waterfall on the page, with prompts, tools, scans, tokens, money and compression (TRC-04, CMP-06)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from annabelle.core.ids import new_id
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.tools import JsonObject
from annabelle.core.trace import TraceFile
from browser.browsing import PHONE, Visit
from hub.hubs import HubProcess, fresh_home
from hub.traced_turn import ANSWER, ASKED, SETTINGS, compress_early, find_events, take_turn
from support.scripted_model import ScriptedServer


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[HubProcess]:
    """A hub with a guardian, whose agent compresses early."""
    home = compress_early(fresh_home(tmp_path_factory.mktemp("traces-view")))
    made = HubProcess(home, model.openai_url, **SETTINGS).start()
    yield made
    made.end()


@pytest.fixture(scope="module")
def turn(hub: HubProcess, model: ScriptedServer) -> JsonObject:
    return take_turn(hub, model, channel="page", chatId="main")


@pytest.fixture(scope="module")
def trace(hub: HubProcess, turn: JsonObject) -> JsonObject:
    return hub.http.get(f"/traces/{turn['traceId']}").json()


def column(page: Page, table: str, label: str) -> list[str]:
    return page.get_by_role("table", name=table).locator(f'td[data-label="{label}"]').all_inner_texts()


@pytest.mark.req("TRC-04", "UX-02")
def test_the_list_leads_to_a_turn_and_the_chat_does_too(visit: Visit, turn: JsonObject) -> None:
    page = visit.sign_in()
    page.get_by_role("link", name="how it came about").first.click()
    expect(page.get_by_role("heading", name="How it came about")).to_be_visible()
    assert page.url.endswith(f"#/traces/{turn['traceId']}")
    page.get_by_role("link", name="‹ All turns").click()
    row = page.get_by_role("table", name="Turns of late").get_by_role("row", name=ASKED)
    expect(row.get_by_text("done", exact=True)).to_be_visible()
    expect(row.get_by_text(f"${turn['costUsd']:.2f}")).to_be_visible()
    row.get_by_role("link", name=ASKED).click()
    expect(page.locator(".message.own").get_by_text(ASKED)).to_be_visible()
    expect(page.locator(".message.agent").get_by_text(ANSWER)).to_be_visible()
    page.get_by_role("link", name="in the chat").click()
    expect(page.locator(".log .message.own").get_by_text(ASKED)).to_be_visible()
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("TRC-04", "UX-02")
def test_a_turn_is_a_waterfall_over_hub_thinker_and_servers(visit: Visit, turn: JsonObject, trace: JsonObject) -> None:
    page = visit.sign_in()
    visit.go(f"traces/{turn['traceId']}")
    lines = page.locator(".waterfall li")
    expect(lines).to_have_count(len(trace["events"]))  # type: ignore[arg-type]
    for layer in ("hub", "thinker", "server"):
        assert page.locator(f".lane .span.{layer}").count() > 0
    lefts = page.locator(".lane .span").evaluate_all("all => all.map((one) => parseFloat(one.style.left))")
    whole, events = trace["durationMs"], trace["events"]
    assert lefts == pytest.approx([min(one["offsetMs"] / whole * 100, 99.5) for one in events], abs=0.01)  # type: ignore[attr-defined, operator]
    called = lines.filter(has_text="model.called").first
    called.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(called.locator("pre")).to_contain_text('"input_tokens"')
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("TRC-04", "UX-02")
def test_prompts_tools_calls_scans_tokens_money_and_errors_are_told(
    visit: Visit, turn: JsonObject, trace: JsonObject
) -> None:
    page = visit.sign_in()
    visit.go(f"traces/{turn['traceId']}")
    (layers,) = find_events(trace, "context.built")
    page.get_by_role("region", name="Prompt").get_by_text("As a table").click()
    assert column(page, "Layers of the prompt", "Layer") == list(layers["data"]["tokens"])
    (chosen,) = find_events(trace, "tools.selected")
    offered = column(page, "Tools offered, and why", "Tool")
    assert set(offered) >= set(chosen["data"]["offered"])
    assert column(page, "Tools offered, and why", "Why")[offered.index("send_message")] == "always offered"
    calls = find_events(trace, "model.called")
    assert column(page, "Model calls", "Cost") == [f"${call['data']['cost_usd']:.2f}" for call in calls]
    assert column(page, "Model calls", "Tokens out") == [f"{call['data']['output_tokens']:,}" for call in calls]
    assert len(column(page, "Scans of the guardian", "Risk")) == len(find_events(trace, "content.scanned"))
    tools = page.get_by_role("region", name="Tool calls")
    read = tools.locator("details.tool", has_text="filer_read_file").first
    read.locator("summary").click()
    expect(read.locator("pre").first).to_contain_text("violet.md")
    expect(tools.locator(".state.failure")).to_have_count(1)
    (failed,) = [one for one in find_events(trace, "tool.returned") if one["data"]["error"]]
    expect(page.get_by_role("region", name="Errors").get_by_text(failed["data"]["error"]).first).to_be_visible()
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("CMP-06")
def test_compression_is_shown_before_and_after_for_every_cycle(
    visit: Visit, turn: JsonObject, trace: JsonObject
) -> None:
    page = visit.sign_in()
    visit.go(f"traces/{turn['traceId']}")
    cycles = [one["data"] for one in find_events(trace, "thinking.done")]
    table = "Compression in each cycle"
    assert column(page, table, "Tokens before") == [f"{one['tokens_before']:,}" for one in cycles]
    assert column(page, table, "Tokens after") == [f"{one['tokens_after']:,}" for one in cycles]
    assert column(page, table, "Ratio") == [f"{round(one['ratio'] * 100)} %" for one in cycles]
    strategies = column(page, table, "Strategy")
    assert [text.split(" ")[0] for text in strategies] == [one["strategy"] for one in cycles]
    assert len(column(page, table, "Took")) == len(column(page, table, "Overhead")) == len(cycles)
    drawn = page.get_by_role("img", name="Tokens before and after compression in each cycle.")
    assert drawn.locator("rect.before").count() == len(cycles)
    assert drawn.locator("rect").count() == 2 * len(cycles)
    expect(page.get_by_text("0 recoveries")).to_be_visible()
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("TRC-04", "CMP-06")
def test_the_sums_are_those_of_all_calls_and_cycles(visit: Visit, hub: HubProcess) -> None:
    trace_id, traces = new_id("tr"), TraceFile(hub.home.traces_file, "thinker", Redactor())
    shortened = {"tokens_before": 4_000, "tokens_after": 1_000, "ratio": 0.25}
    traces.write("thinking.done", {"step": 1, "strategy": "adaptive", **shortened}, trace_id)
    used = {"model": "violet", "input_tokens": 7, "cached_tokens": 2, "output_tokens": 3}
    traces.write("model.called", {**used, "cost_usd": 0.5}, trace_id)
    traces.write("model.called_aside", {**used, "cost_usd": 0.25, "purpose": "thinking"}, trace_id)
    counts = {"success": False, "shortened": 2, "cycles": 3, "recoveries": 1, "context_losses": 5}
    traces.write("thinking.summary", {**shortened, **counts}, trace_id)
    page = visit.sign_in()
    visit.go(f"traces/{trace_id}")
    expect(
        page.get_by_text("4,000 → 1,000 tokens (25 %), shortened in 2 of 3 cycles, 1 recoveries, 5 times")
    ).to_be_visible()
    expect(page.get_by_text("the turn failed.")).to_be_visible()
    facts = page.locator("main dl").first.locator("dd").all_inner_texts()
    assert facts[2:] == ["2", "14 in (4 cached), 6 out", "$0.75", "0"]


@pytest.mark.req("TRC-04", "UX-02")
def test_a_trace_that_is_gone_says_so(visit: Visit) -> None:
    page = visit.sign_in()
    page.evaluate("(hash) => { location.hash = hash }", f"#/traces/{new_id('tr')}")
    expect(page.get_by_role("alert").get_by_text("Nothing is recorded of the trace")).to_be_visible()
    assert visit.foreign == []


@pytest.mark.req("TRC-04", "UX-02")
def test_traces_fit_a_phone(visit: Visit, turn: JsonObject) -> None:
    visit.page.set_viewport_size(PHONE)
    page = visit.sign_in()
    for view in ("traces", f"traces/{turn['traceId']}"):
        visit.go(view)
        expect(page.get_by_text(ASKED).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert (visit.foreign, visit.errors) == ([], [])
