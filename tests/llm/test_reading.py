"""Answers cut at any place read the same, whatever a provider does to its chunks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st
from pydantic_ai.messages import TextPart, ToolCallPart

from annabelle.core.tools import JsonObject
from annabelle.llm.model_tools import format_signature, inline_references, parse_first_object
from annabelle.llm.openai_format import ChunkReader, ThinkTagSplitter, parse_chunk
from annabelle.llm.types import TextDelta


def delta(**fields: object) -> JsonObject:
    return {"choices": [{"delta": fields, "finish_reason": None}]}


def end(reason: str = "stop") -> JsonObject:
    return {"choices": [{"delta": {}, "finish_reason": reason}]}


@pytest.mark.req("LLM-04")
@given(
    thought=st.text(alphabet="ab</think> ", max_size=12).filter(lambda text: "</think>" not in text + "</think"[:7]),
    answer=st.text(alphabet="ab</think> ", max_size=12),
    cuts=st.lists(st.integers(0, 60), max_size=6),
)
def test_think_tags_are_found_wherever_the_chunks_are_cut(thought: str, answer: str, cuts: list[int]) -> None:
    whole = f"<think>{thought}</think>x{answer}"
    places = sorted({0, len(whole), *(min(cut, len(whole)) for cut in cuts)})
    tags, text, thinking = ThinkTagSplitter(), "", ""
    pieces = [whole[a:b] for a, b in pairwise(places)]
    for event in [event for piece in pieces for event in tags.feed(piece)] + tags.finish():
        if isinstance(event, TextDelta):
            text += event.text
        else:
            thinking += event.text
    assert text == f"x{answer}"
    assert thinking.strip() == thought.strip()


@pytest.mark.req("LLM-04")
@given(st.text(max_size=30).filter(lambda text: not text.lstrip().startswith("<")), st.integers(0, 30))
def test_text_without_tags_passes_unchanged(text: str, cut: int) -> None:
    tags = ThinkTagSplitter()
    events = [*tags.feed(text[:cut]), *tags.feed(text[cut:]), *tags.finish()]
    assert "".join(event.text for event in events) == (text if text.strip() else "")


@pytest.mark.req("LLM-01")
@pytest.mark.parametrize(
    "chunks",
    [
        [{"index": 0, "id": "a", "name": "one"}, {"index": 1, "id": "b", "name": "two"}],
        [{"index": 0, "id": "a", "name": "one"}, {"index": 0, "id": "b", "name": "two"}],
        [{"id": "a", "name": "one"}, {"id": "b", "name": "two"}],
        [{"index": 0, "name": "one"}, {"index": 1, "name": "two"}],
    ],
)
def test_two_calls_stay_two_however_they_are_numbered(chunks: list[dict[str, object]]) -> None:
    reader = ChunkReader()
    for chunk in chunks:
        name = chunk.pop("name")
        reader.feed(delta(tool_calls=[{**chunk, "function": {"name": name, "arguments": '{"n": 1}'}}]))
    reader.feed(end("tool_calls"))
    calls = reader.response("ollama", "m", 1).tool_calls
    assert [(call.tool_name, call.args) for call in calls] == [("one", '{"n": 1}'), ("two", '{"n": 1}')]
    assert len({call.tool_call_id for call in calls}) == 2


@pytest.mark.req("LLM-01")
def test_a_call_without_arguments_has_an_empty_object() -> None:
    reader = ChunkReader()
    reader.feed(delta(content="Now:", tool_calls=[{"index": 0, "id": "a", "function": {"name": "one"}}]))
    reader.feed(end("tool_calls"))
    text, call = reader.response("groq", "m", 1).parts
    assert isinstance(text, TextPart)
    assert isinstance(call, ToolCallPart)
    assert call.args_as_dict() == {}


@pytest.mark.req("LLM-07")
def test_usage_is_found_where_groq_puts_it() -> None:
    reader = ChunkReader()
    reader.feed({**end(), "x_groq": {"usage": {"prompt_tokens": 7, "completion_tokens": 2}}})
    assert reader.response("groq", "m", 1).usage.input_tokens == 7


@pytest.mark.req("LLM-08")
@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)))
def test_an_object_is_found_in_prose_and_nothing_else_is_taken_for_one(value: object) -> None:
    assert parse_first_object(f'Sure {{ here: {{"tool": "x"}} and {value!r}') == {"tool": "x"}
    assert parse_first_object("no object here, only { and }") is None


@pytest.mark.req("LLM-08")
def test_schemas_that_refer_to_themselves_end() -> None:
    node: JsonObject = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    schema = inline_references(
        {"type": "object", "properties": {"head": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    )
    assert "$ref" not in str(schema)
    assert format_signature(schema) == "head?: object"


@pytest.mark.req("LLM-08")
def test_a_few_definitions_that_name_each_other_often_stay_small() -> None:
    many = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 20} for n in range(11)}
    schema = inline_references({"type": "object", "properties": {"head": {"$ref": "#/$defs/d0"}}, "$defs": many})
    assert "$ref" not in str(schema)
    assert len(str(schema)) < 100_000


def test_half_a_character_becomes_a_mark_and_a_whole_one_stays() -> None:
    assert parse_chunk(b'{"a": "x\\ud83dy", "b": "\\uD83D\\uDE00", "c": "\\ude00"}') == {
        "a": "x\ufffdy",
        "b": "\U0001f600",
        "c": "\ufffd",
    }
