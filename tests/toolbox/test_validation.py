"""Arguments are checked before a server is touched."""

import socket
from collections.abc import Callable

import pytest

from annabelle.core.errors import InvalidArguments
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.toolbox.middleware import argument_check
from annabelle.toolbox.middleware.argument_check import ArgumentChecker


def spec(schema: JsonObject) -> ToolSpec:
    return ToolSpec(name="t_x", server="t", original_name="x", description="", input_schema=schema)


NESTED: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "items": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.req("RTR-03")
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "path"),
        ({"path": 3}, "path"),
        ({"path": "a", "wrong": 1}, "wrong"),
        ({"path": "a", "items": [{"n": 1}, {"n": "two"}]}, "items.1.n"),
    ],
)
def test_a_mistake_names_its_field(arguments: JsonObject, field: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        ArgumentChecker().check(spec(NESTED), arguments)
    assert caught.value.field == field
    assert field in caught.value.message


@pytest.mark.req("RTR-03")
@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        ({"type": "string", "maxLength": 400}, "x" * 5000, "is too long: it may have at most 400 characters (t_x)."),
        ({"type": "array", "maxItems": 3}, list(range(500)), "is too long: it may have at most 3 entries (t_x)."),
        ({"type": "integer"}, "x" * 5000, "is not of type 'integer' (t_x)."),
        ({"enum": ["a", "b"]}, "x" * 5000, "is not one of ['a', 'b'] (t_x)."),
    ],
)
def test_what_is_wrong_with_a_long_value_is_said(schema: JsonObject, value: object, reason: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        ArgumentChecker().check(spec({"type": "object", "properties": {"text": schema}}), {"text": value})
    assert caught.value.message.endswith(reason)
    assert len(caught.value.message) < 400


def test_good_arguments_pass() -> None:
    ArgumentChecker().check(spec(NESTED), {"path": "a", "items": [{"n": 1}]})


def test_a_changed_tool_is_checked_by_its_new_schema() -> None:
    checker = ArgumentChecker()
    checker.check(spec({"type": "object"}), {"a": "text"})
    with pytest.raises(InvalidArguments):
        checker.check(spec({"type": "object", "properties": {"a": {"type": "integer"}}}), {"a": "text"})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no such type"},
        {"$ref": "#/$defs/missing"},
        {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}},
    ],
)
def test_a_broken_schema_leaves_the_judgement_to_its_server(
    schema: JsonObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*arguments: object) -> None:
        raise AssertionError("a schema reached for the network")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    ArgumentChecker().check(spec(schema), {"a": 1})


def test_validators_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    original: Callable[[ToolSpec], object] = argument_check._make
    monkeypatch.setattr(argument_check, "_make", lambda tool: (made.append(tool.name), original(tool))[1])
    checker, tool = ArgumentChecker(), spec(NESTED)
    for _ in range(3):
        checker.check(tool, {"path": "a"})
    assert made == ["t_x"]
