"""A message that matches a template is done without a model (INT-01)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from annabelle.core.errors import NotFound
from annabelle.core.tools import ToolAnnotations, ToolResult
from annabelle.core.trace import read_trace
from annabelle.thinker.loop.direct_call import DirectCalls
from thinker.fakes import Bench, DictTools, ListedModel
from thinker.test_select import house_bench

pytestmark = pytest.mark.req("INT-01")

FILES = ToolResult(text="a.txt {f-1}", display="a.txt")


def make_bench(folder: Path, *replies: Any, **tools: Any) -> tuple[Bench, DictTools]:
    functions = {"filer_list_files": lambda _: FILES, "store_fact": lambda a: f"Stored {a['fact']}", **tools}
    known = DictTools(read_only=("filer_list_files",), **functions)
    inside = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=False)
    known.specs = [
        spec.model_copy(update={"annotations": inside}) if spec.name == "store_fact" else spec for spec in known.specs
    ]
    bench = Bench(folder, ListedModel(*replies), known)
    bench.parts = replace(bench.parts, direct_calls=DirectCalls(folder / "phrases.toml"))
    return bench, known


@pytest.mark.req("FST-05")
async def test_a_template_calls_its_tool_and_answers_without_a_model(tmp_path: Path) -> None:
    bench, tools = make_bench(tmp_path)
    result = await bench.run("What files do I have?", message_id="msg_1", trace_id="tr_1")
    assert (result.text, result.tools_used) == ("a.txt", ("filer_list_files",))
    assert (result.usage.input_tokens, result.usage.output_tokens) == (0, 0)
    assert bench.model.requests == []
    assert [(call.name, call.arguments) for call in tools.calls] == [("filer_list_files", {})]
    told = [
        line["data"] for line in read_trace(tmp_path / "traces.jsonl", "tr_1") if line["event"] == "template.matched"
    ]
    assert told == [{"template": "what files do i have", "tool": "filer_list_files"}]


async def test_the_next_turn_reads_what_was_done(tmp_path: Path) -> None:
    bench, _ = make_bench(tmp_path, "One file.")
    await bench.run("remember that I like tea")
    await bench.run("how many facts was that?")
    assert "Stored I like tea" in str(bench.sent())


async def test_a_replay_makes_the_call_no_second_time(tmp_path: Path) -> None:
    bench, tools = make_bench(tmp_path)
    first = await bench.run("remember that I like tea", message_id="msg_1")
    bench.engine.rewind()
    assert await bench.run("remember that I like tea", message_id="msg_1") == first
    assert len(tools.calls) == 1


async def test_a_call_that_fails_is_left_to_the_model(tmp_path: Path) -> None:
    bench, _ = make_bench(tmp_path, "There is no workspace.", filer_list_files=lambda _: NotFound("No folder."))
    result = await bench.run("list my files")
    assert result.text == "There is no workspace."
    assert "No folder." in str(bench.sent())


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("list my files in Documents", {}),
        ("list my files", {"required_tools": ("filer_list_files",)}),
        ("list my files", {"conversational": False}),
    ],
)
async def test_everything_else_is_asked_of_the_model(tmp_path: Path, text: str, fields: dict[str, Any]) -> None:
    bench, tools = make_bench(tmp_path, "Well.")
    assert (await bench.run(text, **fields)).text == "Well."
    assert (len(bench.model.requests), tools.calls) == (1, [])


@pytest.mark.req("FST-02")
async def test_a_phrase_of_ones_own_is_understood_and_never_deletes_or_sends(tmp_path: Path) -> None:
    (tmp_path / "phrases.toml").write_text('[filer_list_files]\nphrases = ["ls"]\n[mail_send]\nphrases = ["mail it"]\n')
    bench, tools = make_bench(tmp_path, "To whom?", mail_send=lambda _: "sent")
    assert (await bench.run("ls")).text == "a.txt"
    assert (await bench.run("mail it")).text == "To whom?"
    assert [call.name for call in tools.calls] == ["filer_list_files"]


@pytest.mark.req("FST-02")
@pytest.mark.parametrize(("text", "offered"), [("could you feed the dragon now", True), ("how is the dragon", False)])
async def test_a_tool_is_offered_for_about_the_words_of_a_phrase_of_ones_own(
    tmp_path: Path, text: str, offered: bool
) -> None:
    (tmp_path / "phrases.toml").write_text('[web_browser_click]\nphrases = ["feed dragon"]\n')
    bench = house_bench(tmp_path)
    bench.parts = replace(bench.parts, direct_calls=DirectCalls(tmp_path / "phrases.toml"))
    await bench.run(text)
    assert ("web_browser_click" in [tool.name for tool in bench.model.requests[0].tools]) is offered


async def test_a_damaged_file_of_ones_own_is_told_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "phrases.toml").write_text("[oops")
    bench, _ = make_bench(tmp_path)
    assert (await bench.run("list my files")).text == "a.txt"
    assert "phrases.toml cannot be read" in bench.facts("notice")[0]["data"]["text"]


@pytest.mark.req("FST-02")
async def test_an_argument_that_the_tool_does_not_take_is_told_once(tmp_path: Path) -> None:
    phrases = ["show the shelf => path=.; shelf=3", "show {path}", "show all of {where} => path={where}"]
    (tmp_path / "phrases.toml").write_text(f"[filer_list_files]\nphrases = {phrases}\n")
    bench, tools = make_bench(tmp_path)
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}
    tools.specs = [spec.model_copy(update={"input_schema": schema}) for spec in tools.specs]
    await bench.run("list my files")
    [told] = bench.facts("notice")
    assert told["data"]["text"] == (
        "phrases.toml: “show the shelf” gives filer_list_files shelf, which it does not take."
    )
    await bench.run("list my files")
    assert bench.facts("notice") == []
