"""Arguments in the shape their tool asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from annabelle.core.trace import read_trace
from annabelle.thinker.loop.arguments import fits_schema, normalise_arguments
from thinker.fake_hub import tool
from thinker.fakes import Bench, DictTools, ListedModel

TYPES = ["string", "integer", "number", "boolean", "null", "array", "object"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8) | st.just("5"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)
SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.sampled_from(
        [{"type": kind} for kind in TYPES] + [{}, {"type": ["integer", "null"]}, {"enum": ["Low", "high"]}]
    ),
    lambda inner: st.one_of(
        inner.map(lambda items: {"type": "array", "items": items}),
        st.lists(inner, min_size=1, max_size=3).map(lambda some: {"anyOf": some}),
        st.dictionaries(st.sampled_from("abcd"), inner, min_size=1, max_size=3).map(
            lambda fields: {"type": "object", "properties": fields, "additionalProperties": False}
        ),
    ),
    max_leaves=6,
)
NONSENSE = st.dictionaries(
    st.sampled_from(["type", "properties", "required", "items", "enum", "anyOf", "oneOf", "$ref", "$defs", "const"]),
    VALUES | st.sampled_from(TYPES),
    max_size=4,
)


def shaped(field: dict[str, Any], value: object, *, required: bool = True) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {"x": field}, "required": ["x"] if required else []}
    return normalise_arguments({"x": value}, schema, "").arguments


@pytest.mark.req("LOOP-03")
@pytest.mark.parametrize(
    ("field", "value", "becomes"),
    [
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, " False ", False),
        ({"type": "boolean"}, "perhaps", "perhaps"),
        ({"type": ["boolean", "string"]}, "true", "true"),
        ({"type": "integer"}, "42", 42),
        ({"type": "integer"}, "-7", -7),
        ({"type": "integer"}, "3.0", 3),
        ({"type": "integer"}, "3.5", "3.5"),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "number"}, "1e999", "1e999"),
        ({"type": "number"}, "nan", "nan"),
        ({"type": "number"}, "1_000", "1_000"),
        ({"type": "string"}, "42", "42"),
        ({"type": "string"}, 42, 42),
        ({"type": "string"}, True, True),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "5", 5),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "5", "5"),
        ({"oneOf": [{"type": "boolean"}, {"type": "null"}]}, "true", True),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, None),
        ({"type": "array", "items": {"type": "string"}}, "one", ["one"]),
        ({"type": "array", "items": {"type": "string"}}, '["a", "b"]', ["a", "b"]),
        ({"type": "array", "items": {"type": "integer"}}, ["1", "2"], [1, 2]),
        ({"type": "array", "items": {"type": "integer"}}, "7", [7]),
        ({"type": "array", "items": {"type": "object"}}, "no", "no"),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": "object"}, "{broken", "{broken"),
        ({"type": "object", "properties": {"n": {"type": "integer"}}}, '{"n": "1", "m": 2}', {"n": 1}),
        ({"enum": ["Low", "High"]}, "high", "High"),
        ({"type": "string", "enum": ["a", "A"]}, "a", "a"),
        ({"type": "object", "properties": {"deep": {"type": "array", "items": {"type": "boolean"}}}},
         {"deep": ["true", False]}, {"deep": [True, False]}),
    ],
)  # fmt: skip
def test_a_value_becomes_what_the_schema_wants_where_it_can_be_read_in_one_way(
    field: dict[str, Any], value: object, becomes: object
) -> None:
    assert json.dumps(shaped(field, value)["x"]) == json.dumps(becomes)


@pytest.mark.req("LOOP-03")
def test_nulls_of_optional_fields_are_dropped_and_those_that_mean_something_stay() -> None:
    assert shaped({"type": "string"}, None, required=False) == {}
    assert shaped({"type": "integer"}, "", required=False) == {}
    assert shaped({"type": "string"}, "", required=False) == {"x": ""}
    assert shaped({"type": ["string", "null"]}, None, required=False) == {"x": None}
    assert shaped({"type": "string"}, None) == {"x": None}


@pytest.mark.req("LOOP-03")
@pytest.mark.parametrize(("allowed", "kept"), [(None, False), (False, False), (True, True), ({"type": "string"}, True)])
def test_unknown_fields_are_dropped_unless_the_tool_takes_them(allowed: object, kept: bool) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "string"}}}
    if allowed is not None:
        schema["additionalProperties"] = allowed
    result = normalise_arguments({"x": "a", "teamId": "t"}, schema, "")
    assert ("teamId" in result.arguments, result.changed) == (kept, () if kept else ("teamId",))
    assert normalise_arguments({"any": 1}, {"type": "object"}, "").arguments == {"any": 1}


@pytest.mark.req("LOOP-03")
@pytest.mark.parametrize("given_id", [{}, {"chat_id": None}, {"chat_id": ""}])
def test_the_chat_id_is_filled_in_where_the_tool_needs_one(given_id: dict[str, Any]) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"chat_id": {"type": "string"}}, "required": ["chat_id"]}
    result = normalise_arguments(given_id, schema, "chat-7")
    assert (result.arguments, result.changed) == ({"chat_id": "chat-7"}, ("chat_id",))
    assert normalise_arguments({"chat_id": "other"}, schema, "chat-7").arguments == {"chat_id": "other"}
    optional: dict[str, Any] = {"type": "object", "properties": {"chat_id": {"type": "string"}}}
    assert normalise_arguments({}, optional, "chat-7").arguments == {}


@pytest.mark.req("LOOP-03")
def test_references_in_a_schema_are_followed() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/Place"}},
        "$defs": {"Place": {"type": "object", "properties": {"row": {"type": "integer"}}}},
    }
    assert normalise_arguments({"at": {"row": "3"}}, schema, "").arguments == {"at": {"row": 3}}


@pytest.mark.req("LOOP-03")
@given(value=VALUES, schema=SCHEMAS)
def test_what_fits_stays_as_it_is(value: object, schema: dict[str, Any]) -> None:
    whole: dict[str, Any] = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    if fits_schema(value, schema):
        result = normalise_arguments({"x": value}, whole, "chat")
        assert result.changed == ()
        assert json.dumps(result.arguments) == json.dumps({"x": value})


@pytest.mark.req("LOOP-03")
@given(arguments=st.dictionaries(st.text(max_size=4) | st.sampled_from("abx"), VALUES, max_size=4), schema=NONSENSE)
def test_no_schema_and_no_value_can_make_it_fail(arguments: dict[str, Any], schema: dict[str, Any]) -> None:
    wrapped: dict[str, Any] = {"type": "object", "properties": {"x": schema, "a": schema}}
    for whole in (schema, wrapped):
        again = normalise_arguments(normalise_arguments(arguments, whole, "chat").arguments, whole, "chat")
        assert isinstance(again.arguments, dict)


@pytest.mark.req("LOOP-03")
def test_a_value_nested_beyond_measure_is_left_alone() -> None:
    value: object = "1"
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(200):
        value, schema = [value], {"type": "array", "items": schema}
    assert shaped(schema, value)["x"] == value
    assert shaped({"type": "object"}, "[" * 100_000)["x"] == "[" * 100_000


@pytest.mark.req("LOOP-03")
async def test_a_call_goes_out_in_shape_and_the_trace_names_what_was_changed_without_its_values(
    tmp_path: Path,
) -> None:
    tools = DictTools(send_photo=lambda a: "shown")
    fields = {"chat_id": {"type": "string"}, "count": {"type": "integer"}, "loud": {"type": "boolean"}}
    schema = {"type": "object", "properties": fields, "required": ["chat_id"]}
    tools.specs = [tool("send_photo").model_copy(update={"input_schema": schema})]
    call = ("send_photo", {"count": "31337", "loud": "true", "slug": "secret-thing"})
    bench = Bench(tmp_path, ListedModel([call], "There it is."), tools)
    await bench.run(message_id="msg_n", trace_id="tr_n")
    assert tools.calls[0].arguments == {"chat_id": "chat", "count": 31337, "loud": True}
    assert bench.facts("tool_start")[0]["data"]["arguments"] == tools.calls[0].arguments
    told = [line for line in read_trace(tmp_path / "traces.jsonl", "tr_n") if line["event"] == "tool.normalised"]
    assert told[0]["data"] == {
        "call_id": "msg_n:1:0",
        "tool": "send_photo",
        "fields": ["count", "loud", "slug", "chat_id"],
    }
    assert "31337" not in json.dumps(told)
