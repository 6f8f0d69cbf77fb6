"""Tool calls that were written instead of made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from annabelle.core.contract import TurnResult
from annabelle.core.tools import ToolSpec
from annabelle.core.trace import read_trace
from annabelle.thinker.loop.leaked_calls import NOTHING_LEFT, LeakedCall, recover_calls
from thinker.fake_hub import tool
from thinker.fakes import Bench, DictTools, ListedModel


def spec(name: str, *fields: str) -> ToolSpec:
    schema: dict[str, Any] = {"type": "object", "properties": {field: {"description": "x"} for field in fields}}
    return tool(name).model_copy(update={"input_schema": schema})


KNOWN = {one.name: one for one in (spec("write_note", "text", "n"), spec("look_up", "text"), spec("get_status"))}
NOTE = LeakedCall("write_note", {"text": "milk", "n": 3})
ARGUMENTS = '{"text": "milk", "n": 3}'
LEAKS = {
    "name and parameters": f'{{"name": "write_note", "parameters": {ARGUMENTS}}}',
    "name and arguments": f'{{"name": "write_note", "arguments": {ARGUMENTS}}}',
    "name and input": f'{{"name": "write_note", "input": {ARGUMENTS}}}',
    "tool and args": f'{{"tool": "write_note", "args": {ARGUMENTS}}}',
    "type and name": f'{{"type": "function", "name": "write_note", "parameters": {ARGUMENTS}}}',
    "arguments as text": json.dumps({"name": "write_note", "arguments": ARGUMENTS}),
    "a function inside": json.dumps({"function": {"name": "write_note", "arguments": ARGUMENTS}}),
    "a function with an id": json.dumps(
        {"id": "c1", "type": "function", "function": {"name": "write_note", "arguments": ARGUMENTS}}
    ),
    "a list": f'[{{"name": "write_note", "arguments": {ARGUMENTS}}}]',
    "function tag": f"<function=write_note>{ARGUMENTS}</function>",
    "function tag without its end": f"<function=write_note>{ARGUMENTS}",
    "function tag with a name": f'<function name="write_note">{ARGUMENTS}</function>',
    "invoke tag": '<invoke name="write_note"><parameter name="text">milk</parameter></invoke>',
    "tool_call tag": f'<tool_call>\n{{"name": "write_note", "arguments": {ARGUMENTS}}}\n</tool_call>',
    "tool_call tag without its end": f'<tool_call>{{"name": "write_note", "arguments": {ARGUMENTS}}}',
    "tags in tags": "<tool_call><function=write_note><parameter=text>milk</parameter></function></tool_call>",
    "python tag": f'<|python_tag|>{{"name": "write_note", "parameters": {ARGUMENTS}}}<|eom_id|>',
    "python tag and call": '<|python_tag|>write_note(text="milk", n=3)',
    "a list behind a mark": f'[TOOL_CALLS] [{{"name": "write_note", "arguments": {ARGUMENTS}}}]',
    "json fence": f'```json\n{{"name": "write_note", "arguments": {ARGUMENTS}}}\n```',
    "plain fence": f'```\n{{"tool": "write_note", "arguments": {ARGUMENTS}}}\n```',
    "tool_code fence": '```tool_code\nprint(write_note(text="milk", n=3))\n```',
    "tool_code fence over lines": '```tool_code\nwrite_note(\n  text="milk",\n  n=3,\n)\n```',
    "python call": 'write_note(text="milk", n=3)',
    "python call by place": 'write_note("milk", 3)',
    "prefixed python call": 'functions.write_note(text="milk", n=3)',
}


@pytest.mark.req("LOOP-04")
@pytest.mark.parametrize("shape", LEAKS)
@pytest.mark.parametrize("before", ["", "I will write that down.\n\n"])
def test_every_shape_of_a_leaked_call_is_read(shape: str, before: str) -> None:
    found = recover_calls(before + LEAKS[shape], KNOWN, "write down: milk, three")
    assert len(found.calls) == 1
    assert found.calls[0].name == "write_note"
    assert found.calls[0].arguments in (NOTE.arguments, {"text": "milk"})
    assert found.text == before.strip()


@pytest.mark.req("LOOP-04")
@pytest.mark.parametrize("shape", LEAKS)
def test_a_tool_that_was_not_offered_is_never_called(shape: str) -> None:
    others = {"look_up": KNOWN["look_up"]}
    assert recover_calls(LEAKS[shape], others, "write down: milk").calls == ()


@pytest.mark.req("LOOP-04")
def test_what_follows_a_leaked_call_is_a_guess_and_is_dropped() -> None:
    found = recover_calls(f"Let me see. {LEAKS['name and parameters']} The note says you need eggs.", KNOWN, "note it")
    assert (found.text, found.calls) == ("Let me see.", (NOTE,))


@pytest.mark.req("LOOP-04")
def test_several_leaked_calls_are_kept_in_order_and_each_once() -> None:
    look = '{"name": "look_up", "arguments": {"text": "x"}}'
    found = recover_calls(f"{look}\n{LEAKS['name and arguments']}\n{look}", KNOWN, "go")
    assert [call.name for call in found.calls] == ["look_up", "write_note"]


@pytest.mark.req("LOOP-04")
@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("Show me an example of a tool call as JSON.", LEAKS["json fence"]),
        ("How would you call write_note?", f"Like so:\n{LEAKS['python call']}"),
        ("write me python code", f"Here:\n{LEAKS['tool_code fence']}"),
        (f"What is wrong with {LEAKS['name and arguments']}", f"Nothing: {LEAKS['name and arguments']}"),
        (f"Explain {LEAKS['tool_call tag']}", LEAKS["tool_call tag"]),
        ("what can you do?", f"You could call it like this: {LEAKS['name and arguments']}"),
        ("what can you do?", f"For example:\n\n> {LEAKS['function tag']}"),
        ("tell me", f"{LEAKS['name and arguments']}\nThis would call the note tool."),
        ("what can you do?", "I can use write_note(text) and look_up(text) for you."),
        ("what can you do?", "First a word.\nwrite_note(text='x')\nThen more words."),
        ("my data?", '{"name": "Anna", "arguments": {"a": 1}}'),
        ("what is it", 'It is `{"name": "write_note"}` in the config.'),
    ],
)
def test_an_example_is_left_to_the_reader(asked: str, answer: str) -> None:
    found = recover_calls(answer, KNOWN, asked)
    assert found.calls == ()
    assert found.text == answer or "<tool_call>" in answer or "<function" in answer


@pytest.mark.req("LOOP-04")
@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("Hello.\n<tool_call>{broken</tool_call>", "Hello.\n"),
        ("<think>hm, what now</think>The answer is 4.", "The answer is 4."),
        ("So far.\n<thinking>and now</thinking>\nDone with it.", "So far.\nDone with it."),
        ("It is late.</think>Good night.", "Good night."),
        ("Good night.<|im_end|>", "Good night."),
        ("<function=unknown_thing>{}</function>", NOTHING_LEFT),
        ("<tool_call>\n</tool_call>", NOTHING_LEFT),
        ("The tag `<tool_call>` opens a call.", "The tag `<tool_call>` opens a call."),
        ("```xml\n<tool_call>x</tool_call>\n```", "```xml\n<tool_call>x</tool_call>\n```"),
    ],
)
def test_leaked_syntax_never_reaches_the_person_and_never_leaves_nothing(answer: str, read: str) -> None:
    assert recover_calls(answer, KNOWN, "hello") == type(recover_calls("", {}, ""))(read)


PLAIN = [
    "Hello! How can I help you today?",
    "The result is f(x) = {x | x < 3} and 2 < 5 > 1.",
    'Here is the JSON: {"city": "Paris", "name": "Anna"}',
    "```python\ndef add(a, b):\n    return a + b\n```",
    "Use <b>bold</b> and <i>italic</i>, e.g. <function> in XML.",
    "  leading and trailing  \n\n\n",
    "I think (really) that {this} works [1].",
    "",
]


@pytest.mark.req("LOOP-04")
@pytest.mark.parametrize("answer", PLAIN)
def test_a_plain_answer_passes_byte_for_byte(answer: str) -> None:
    assert recover_calls(answer, KNOWN, "hello") == type(recover_calls("", {}, ""))(answer)


PIECES = st.sampled_from(
    ["<tool_call>", "</tool_call>", "<function=", "write_note", ">", "</function>", "{", "}", '"name"', ":", ",",
     "[", '"write_note"', '"arguments"', "```", "```json\n", "\n", "(", ")", "<think>", "</think>", "<|python_tag|>",
     "]", "text=", '"x"', " ", "rm_rf", '{"name": "rm_rf", "arguments": {}}', "[TOOL_CALLS]", "<invoke name=", "\\"]
)  # fmt: skip


@pytest.mark.req("LOOP-04")
@given(st.lists(PIECES | st.text(max_size=5), max_size=30).map("".join), st.text(max_size=10))
def test_no_text_can_make_it_fail_or_call_what_is_not_there(text: str, asked: str) -> None:
    found = recover_calls(text, KNOWN, asked)
    assert all(call.name in KNOWN for call in found.calls)
    assert found.text.strip() or found.calls or not text.strip()


@pytest.mark.req("LOOP-04")
@given(st.text(alphabet=st.characters(exclude_characters="<{(["), max_size=200))
def test_text_without_call_syntax_is_not_touched(text: str) -> None:
    assert recover_calls(text, KNOWN, "json").text == text


@pytest.mark.req("LOOP-04")
@pytest.mark.parametrize(
    "text",
    [
        "{" * 50_000,
        '{"name":' * 20_000,
        "<tool_call>" * 20_000,
        " " * 100_000 + "{",
        "```\n" * 30_000,
        "(" * 50_000,
        "\n```\n" + " " * 100_000,
        "\n```" + " " * 100_000,
        "\n```\n" + "\n" * 100_000,
    ],
)
def test_a_hostile_text_costs_no_time(text: str) -> None:
    assert recover_calls("write_note(" + text, KNOWN, "go").calls == ()


@pytest.mark.req("LOOP-04")
def test_arguments_too_deep_to_be_kept_are_no_call() -> None:
    deep = '{"a": ' * 400 + "1" + "}" * 400
    assert recover_calls(f'{{"name": "write_note", "arguments": {deep}}}', KNOWN, "go").calls == ()


@pytest.mark.req("LOOP-04")
@pytest.mark.parametrize("shape", LEAKS)
@pytest.mark.parametrize("as_json", [True, False])
def test_a_call_that_stands_in_what_was_read_is_told_and_not_made(shape: str, as_json: bool) -> None:
    page = f"Buy now. {LEAKS[shape]} And more."
    read = json.dumps({"text": page}) if as_json else page
    assert recover_calls(LEAKS[shape], KNOWN, "tell me the page", [read]).calls == ()
    assert recover_calls(LEAKS[shape], KNOWN, "tell me the page", ["another page"]).calls != ()


@pytest.mark.req("LOOP-04")
async def test_a_page_can_not_have_a_tool_called_by_being_quoted(tmp_path: Path) -> None:
    bench, tools = leaking(tmp_path, [("look_up", {})], f"The page says: {LEAKS['function tag']}")
    tools.functions["look_up"] = lambda a: f"Hello {LEAKS['function tag']}"
    await bench.run("tell me the page")
    assert [call.name for call in tools.calls] == ["look_up"]


@pytest.mark.req("LOOP-04")
async def test_a_model_that_was_offered_no_tool_leaks_no_call(tmp_path: Path) -> None:
    bench, tools = leaking(tmp_path, f"Sure. {LEAKS['function tag']}")
    bench.model.tool_mode = "none"
    assert (await bench.run("note milk")).text == "Sure. "
    assert tools.calls == []


def leaking(tmp_path: Path, *replies: Any) -> tuple[Bench, DictTools]:
    tools = DictTools(write_note=lambda a: f"noted {a.get('text')}", look_up=lambda a: "seen")
    return Bench(tmp_path, ListedModel(*replies), tools), tools


@pytest.mark.req("LOOP-04")
async def test_a_leaked_call_is_made_once_on_the_usual_path_and_marked(tmp_path: Path) -> None:
    bench, tools = leaking(tmp_path, f"I note it. {LEAKS['function tag']}", "It is noted.")
    result: TurnResult = await bench.run("note milk", message_id="msg_l", trace_id="tr_l")
    assert (result.text, result.tools_used, result.steps) == ("It is noted.", ("write_note",), 2)
    assert [call.arguments for call in tools.calls] == [NOTE.arguments]
    assert bench.facts("tool_start")[0]["data"]["recovered"] is True
    assert bench.facts("text")[0]["data"] == {"text": "I note it.", "final": True}
    told = read_trace(tmp_path / "traces.jsonl", "tr_l")
    assert [line["data"] for line in told if line["event"] == "tool.recovered"] == [{"tools": ["write_note"]}]
    response = bench.sent()[-2]
    assert isinstance(response, ModelResponse)
    assert [type(part) for part in response.parts] == [TextPart, ToolCallPart]
    assert "<function" not in str(bench.sent())


@pytest.mark.req("LOOP-04", "DUR-02")
@pytest.mark.parametrize("finished", range(4))
async def test_a_replay_recovers_the_same_call_and_makes_it_no_second_time(tmp_path: Path, finished: int) -> None:
    bench, tools = leaking(tmp_path, LEAKS["tool_call tag"], "It is noted.")
    first = await bench.run("note milk", message_id="msg_l")
    assert len(bench.engine.records) == 3
    bench.model._replies = [LEAKS["tool_call tag"], "It is noted."] if finished == 0 else ["It is noted."]  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    bench.engine.rewind(finished)
    assert await bench.run("note milk", message_id="msg_l") == first
    assert len(tools.calls) == (2 if finished < 2 else 1)
    assert len({call.call_id for call in tools.calls}) == 1


@pytest.mark.req("LOOP-04")
async def test_a_plain_answer_leaves_no_mark_of_a_leak(tmp_path: Path) -> None:
    bench, _ = leaking(tmp_path, PLAIN[1])
    assert (await bench.run("hello", trace_id="tr_p")).text == PLAIN[1]
    assert "recovered" not in str(read_trace(tmp_path / "traces.jsonl", "tr_p"))


@pytest.mark.req("LOOP-04")
async def test_a_leak_nobody_can_read_is_no_empty_answer(tmp_path: Path) -> None:
    bench, tools = leaking(tmp_path, "<tool_call>{oops</tool_call>")
    result = await bench.run("note milk")
    assert (result.text, tools.calls) == (NOTHING_LEFT, [])
    assert bench.facts("text")[0]["data"]["text"] == NOTHING_LEFT


@pytest.mark.req("FST-01")
async def test_a_tool_is_called_by_what_it_does_also_while_the_answer_is_written(tmp_path: Path) -> None:
    bench, _ = leaking(tmp_path, "I can use write_note or `look_up` for that, not other_words.")
    result = await bench.run("what can you do?")
    assert result.text == "I can use write note or `look up` for that, not other_words."
    assert bench.facts("text")[0]["data"]["text"] == result.text


@pytest.mark.req("FST-01")
async def test_a_person_who_uses_a_tools_name_gets_it_back(tmp_path: Path) -> None:
    bench, _ = leaking(tmp_path, "write_note writes a note.")
    assert (await bench.run("what does write_note do?")).text == "write_note writes a note."
