"""Slim schemas: fewer words, the same calls."""

from __future__ import annotations

import json

import pytest

from annabelle.thinker.selection.hybrid_selector import SlimToolSpecs, shorten_description, slim_tool
from annabelle.thinker.selection.selection import outline_tool
from thinker.test_select import spec

_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Search",
    "type": "object",
    "properties": {
        "title": {"type": "string", "title": "Title", "minLength": 1, "maxLength": 100_000, "default": ""},
        "examples": {"type": "array", "items": {"type": "string", "title": "One"}, "examples": [["a"]]},
        "size": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5, "description": "How many. " * 40},
        "kind": {"anyOf": [{"enum": ["a", "b"], "title": "Kind"}, {"type": "null"}], "default": None},
    },
    "required": ["title"],
    "additionalProperties": False,
}


@pytest.mark.req("SEL-02")
def test_a_schema_loses_words_and_no_rule() -> None:
    slim = slim_tool(spec("search", input_schema=_SCHEMA)).input_schema
    assert slim == {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "examples": {"type": "array", "items": {"type": "string"}},
            "size": {
                "type": "integer",
                "minimum": 1,
                "maximum": 20,
                "default": 5,
                "description": ("How many. " * 14).strip(),
            },
            "kind": {"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]},
        },
        "required": ["title"],
        "additionalProperties": False,
    }
    assert len(json.dumps(slim)) < len(json.dumps(_SCHEMA)) / 1.8


@pytest.mark.req("SEL-04")
def test_a_tool_that_is_only_at_hand_is_shown_by_what_it_must_be_given() -> None:
    told = spec("search", input_schema=slim_tool(spec("search", input_schema=_SCHEMA)).input_schema)
    brief = outline_tool(told.model_copy(update={"description": "[Web | Search] Find a page.\nIt takes long."}))
    assert brief.description == "Find a page. Also takes examples, size, kind."
    assert brief.input_schema == {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
    }
    bare = outline_tool(spec("ping", input_schema={"type": "object", "$defs": {"A": {"type": "string"}}}))
    assert bare.input_schema == {"type": "object", "properties": {}, "$defs": {"A": {"type": "string"}}}


def test_a_tool_is_slimmed_once() -> None:
    specs, tool = SlimToolSpecs(), spec("search", input_schema=_SCHEMA)
    assert specs.get(tool) is specs.get(tool)
    assert specs.get(tool.model_copy()) is not specs.get(tool)


def test_a_long_text_ends_with_a_sentence_or_says_that_it_goes_on() -> None:
    assert shorten_description("One. Two two. Three", 16) == "One. Two two."
    assert shorten_description("word " * 50, 20) == "word word word word…"
    assert shorten_description("short", 20) == "short"


def test_a_schema_as_deep_as_nobody_writes_it_is_no_trouble() -> None:
    deep: dict[str, object] = {"type": "string"}
    for _ in range(500):
        deep = {"type": "object", "properties": {"x": deep}}
    assert slim_tool(spec("deep", input_schema=deep)).input_schema["type"] == "object"
