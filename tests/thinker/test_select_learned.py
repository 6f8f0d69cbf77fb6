"""The learned selection of built-in tools, and how it joins the ranking of those it does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from annabelle.core.contract import ToolList
from annabelle.core.settings import Settings
from annabelle.core.tools import ToolSpec
from annabelle.embeddings import EmbeddingConfig, make_embedder
from annabelle.language import tool_odds
from annabelle.language.tool_odds import NO_TOOL, packaged_tool_odds
from annabelle.thinker.selection import hybrid_selector
from annabelle.thinker.selection.hybrid_selector import CORE, HybridSelector, pick_learned
from annabelle.thinker.selection.selection import SelectionRequest, ToolSelection
from thinker.thinkers import brief


def spec(name: str, description: str = "", server: str = "") -> ToolSpec:
    return ToolSpec(
        name=name,
        server=server or name.partition("_")[0],
        original_name=name,
        description=description or name.replace("_", " ").capitalize() + ".",
        input_schema={"type": "object", "properties": {}},
    )


def built_in() -> list[ToolSpec]:
    odds = packaged_tool_odds()
    assert odds is not None
    return [spec(name) for name in dict.fromkeys((*CORE, *odds.names)) if name]


async def select(text: str, *more: ToolSpec, previous: str = "") -> ToolSelection:
    selector = HybridSelector(Settings(), make_embedder(EmbeddingConfig(), None), 0.7)
    available = ToolList(version=f"learned-{len(more)}", tools=(*built_in(), *more))
    return await selector.select(SelectionRequest(brief(text), text, available, previous=previous))


@pytest.mark.req("FST-03")
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("put oat milk on my shopping list", "notes_add_todo"),
        ("hows the weather in Lisbon rn", "everyday_get_weather"),
        ("what files do I have?", "filer_list_files"),
        ("how many cups are 500 ml", "everyday_convert_units"),
    ],
)
async def test_the_tool_that_is_asked_for_stands_first_and_few_go_along(text: str, wanted: str) -> None:
    selection = await select(text)
    assert selection.report is not None
    assert (selection.report.method, selection.report.top[0][0]) == ("learned", wanted)
    assert wanted in selection.names()
    assert len(selection.names()) <= len(CORE) + 4


@pytest.mark.req("FST-03", "SEL-04")
async def test_what_the_message_asks_for_is_shown_whole_and_the_rest_in_brief() -> None:
    selection = await select("remember that I am allergic to nuts")
    assert "store_fact" not in selection.in_brief
    assert {"get_status", "spawn_subagent"} <= selection.in_brief
    found = selection.with_found(["spawn_subagent"])
    assert "spawn_subagent" not in found.in_brief, "the model asked for it"
    assert [tool.name for tool in found.shown()] == selection.names()


@pytest.mark.req("FST-03", "SEL-04")
async def test_core_tools_go_along_whatever_is_learned() -> None:
    assert set(CORE) <= set((await select("what files do I have?")).names())


@pytest.mark.req("FST-03")
async def test_a_request_of_several_steps_gets_the_tools_of_each() -> None:
    names = (await select("add milk to groceries and what's the weather in Paris?")).names()
    assert {"notes_add_todo", "everyday_get_weather"} <= set(names)


@pytest.mark.req("FST-03")
def test_flat_odds_offer_more_and_clear_ones_few() -> None:
    names = [f"t{number}" for number in range(20)]
    flat = pick_learned([dict.fromkeys(names, 0.05)], set(names))
    clear = pick_learned([{"t0": 0.98, "t1": 0.01, "t2": 0.01}], set(names))
    assert len(flat) == 8
    assert list(clear) == ["t0"]


@pytest.mark.req("FST-03")
def test_a_tool_that_is_gone_is_not_picked_however_likely_it_is() -> None:
    assert pick_learned([{"gone": 0.6, "t0": 0.3, NO_TOOL: 0.1}], {"t0", "t1"}) == {"t0": 0.3}
    assert pick_learned([{"gone": 1.0}], {"t0"}) == {}


@pytest.mark.req("FST-03")
async def test_tools_of_other_servers_are_ranked_as_before_and_join() -> None:
    flight = spec("airline_book_flight", "Book a flight from one city to another on a date.", "airline")
    selection = await select("book a flight from Oslo to Rome on Friday", flight)
    assert "airline_book_flight" in selection.names()
    assert "everyday_get_weather" in (await select("hows the weather in Lisbon rn", flight)).names()


@pytest.mark.req("FST-03")
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Welche Dateien habe ich?", "filer_list_files"),
        ("quels fichiers ai-je ?", "filer_list_files"),
        ("今日の天気は", "everyday_get_weather"),
    ],
)
async def test_another_language_is_left_to_the_ranking(text: str, wanted: str) -> None:
    odds = packaged_tool_odds()
    assert odds is not None
    assert odds(text) == {}
    selection = await select(text)
    assert selection.report is not None
    assert selection.report.method != "learned"
    assert wanted in selection.names()


@pytest.mark.req("FST-03")
async def test_the_tool_of_the_message_before_tells_what_a_short_one_means() -> None:
    odds = packaged_tool_odds()
    assert odds is not None
    alone, after = odds("and in Oslo?"), odds("and in Oslo?", "everyday_get_weather")
    assert max(after, key=after.__getitem__) == "everyday_get_weather"
    assert after["everyday_get_weather"] > alone["everyday_get_weather"]
    assert "everyday_get_weather" in (await select("and in Oslo?", previous="everyday_get_weather")).names()


@pytest.mark.req("FST-03")
async def test_damaged_weights_are_mentioned_and_tools_ranked_without_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for content in (b"", b"PK not a zip", tool_odds.WEIGHTS.read_bytes()[:100_000]):
        file = tmp_path / "weights.npz"
        file.write_bytes(content)
        monkeypatch.setattr(tool_odds, "WEIGHTS", file)
        assert packaged_tool_odds.__wrapped__() is None
    assert "not used" in caplog.text
    available = built_in()
    monkeypatch.setattr(hybrid_selector, "packaged_tool_odds", lambda: None)
    selector = HybridSelector(Settings(), make_embedder(EmbeddingConfig(), None), 0.7)
    listed = ToolList(version="damaged", tools=tuple(available))
    text = "list my files"
    selection = await selector.select(SelectionRequest(brief(text), text, listed))
    assert selection.report is not None
    assert selection.report.method != "learned"
    assert "filer_list_files" in selection.names()


@pytest.mark.parametrize("text", ["", " ", "🙂🙂🙂", "x" * 50_000, "<|im_start|>system\n" * 500])
def test_whatever_is_written_odds_are_odds(text: str) -> None:
    odds = packaged_tool_odds()
    assert odds is not None
    for step in odds.steps(text):
        assert not step.odds or sum(step.odds.values()) == pytest.approx(1, abs=1e-3)
    assert odds("")[NO_TOOL] == 1.0


@pytest.mark.req("FST-03")
@pytest.mark.parametrize(
    ("text", "is_known"),
    [
        ("add horse shampoo to the Stable list", True),
        ("12 * (3 + 4)", True),
        ("sqrt of 7921", True),
        ("Überweise bitte 300 € an Jana, morgen 9:00 – ok?", False),
        ("¿Qué tiempo hace hoy en Bilbao (22:00)?", False),
    ],
)
def test_signs_and_numbers_do_not_tell_whether_a_text_is_in_another_language(text: str, is_known: bool) -> None:
    odds = packaged_tool_odds()
    assert odds is not None
    assert bool(odds(text)) is is_known
