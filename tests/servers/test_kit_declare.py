"""A tool that lacks something never gets as far as being listed."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.kit import Result, ToolServer, tool

Text = Annotated[str, Field(description="Any text")]


class Said(Result):
    said: str


class Inner(BaseModel):
    title: str


class Colour(Enum):
    RED = "red"


@tool(read_only=True, destructive=False, idempotent=True, open_world=False)
async def everything(
    text: Text,
    inner: Annotated[Inner, Field(description="A nested one")],
    colour: Annotated[Colour, Field(description="A colour")] = Colour.RED,
    size: Annotated[Literal["big", "small"], Field(description="A size")] = "big",
) -> Said:
    """Take one of each."""
    return Said(said=f"{text} {inner.title} {colour.value} {size}")


@pytest.mark.req("SRV-ALL")
def test_a_tool_without_all_four_annotations_can_not_be_declared() -> None:
    with pytest.raises(TypeError, match="open_world"):
        tool(read_only=True, destructive=False, idempotent=True)  # pyright: ignore[reportCallIssue]


@pytest.mark.req("SRV-ALL")
def test_a_function_that_was_never_declared_is_refused() -> None:
    async def bare(text: Text) -> Said:
        """Say."""
        return Said(said=text)

    with pytest.raises(TypeError, match="no annotations"):
        ToolServer("x", [bare])


def test_reading_and_destroying_exclude_each_other() -> None:
    with pytest.raises(TypeError, match="destructive"):
        tool(read_only=True, destructive=True, idempotent=True, open_world=False)


_mark = tool(read_only=True, destructive=False, idempotent=True, open_world=False)


@_mark
async def without_docstring(text: Text) -> Said:
    return Said(said=text)


@_mark
async def without_description(text: str) -> Said:
    """Say."""
    return Said(said=text)


@_mark
async def without_type(text) -> Said:  # pyright: ignore
    """Say."""
    return Said(said=text)


@_mark
async def without_model(text: Text) -> str:  # pyright: ignore
    """Say."""
    return text


@_mark
def not_async(text: Text) -> Said:  # pyright: ignore
    """Say."""
    return Said(said=text)


@pytest.mark.req("SRV-ALL")
@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (without_docstring, "docstring"),
        (without_description, "describe text"),
        (without_type, "needs a type"),
        (without_model, "pydantic model"),
        (not_async, "async"),
    ],
)
def test_an_incomplete_tool_is_refused_by_name(function: object, complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        ToolServer("x", [function])


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match="Two tools"):
        ToolServer("x", [everything, everything])


@pytest.mark.req("SRV-ALL")
def test_the_schema_comes_from_the_signature_without_references_or_titles() -> None:
    schema = ToolServer("x", [everything]).tools["everything"].input_schema()
    assert schema["required"] == ["text", "inner"]
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert properties["text"] == {"description": "Any text", "type": "string"}
    assert properties["size"]["enum"] == ["big", "small"]
    assert properties["colour"]["enum"] == ["red"]
    assert "title" in properties["inner"]["properties"], "a property may be called title"
    assert "$ref" not in str(schema)
    assert "$defs" not in schema


async def test_arguments_arrive_parsed() -> None:
    declared = ToolServer("x", [everything]).tools["everything"]
    result = await declared.call({"text": "a", "inner": {"title": "b"}})
    assert result == Said(said="a b red big")


@pytest.mark.req("SRV-ALL")
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"inner": {"title": "b"}}, "text"),
        ({"text": "a", "inner": {"title": 5}}, "inner.title"),
        ({"text": "a", "inner": {"title": "b"}, "extra": 1}, "extra"),
        ({"text": "a", "inner": {"title": "b"}, "size": "huge"}, "size"),
    ],
)
async def test_a_wrong_argument_is_named(arguments: dict[str, object], field: str) -> None:
    declared = ToolServer("x", [everything]).tools["everything"]
    with pytest.raises(InvalidArguments) as caught:
        await declared.call(arguments)
    assert caught.value.field == field
    assert field in caught.value.message
