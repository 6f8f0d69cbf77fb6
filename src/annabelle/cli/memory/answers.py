"""How an answer of the memory is printed: as it stands for machines, in its own words for people."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from annabelle.cli.output import print_json, print_line
from annabelle.cli.screen import clean
from annabelle.core.tools import JsonObject, ToolResult

Agent = Annotated[str | None, typer.Option("--agent", help="The memory of this agent instead of the usual one's.")]


def structured(result: ToolResult) -> JsonObject:
    """The answer for machines."""
    return result.structured or {}


def rows_of(result: ToolResult, name: str) -> list[JsonObject]:
    """A list in the answer."""
    return cast("list[JsonObject]", structured(result).get(name) or [])


def show(result: ToolResult, *, json: bool) -> None:
    """The answer's own words, or its data."""
    if json:
        print_json(structured(result))
    else:
        print_line(clean(result.text))


def day(value: object) -> str:
    """The day of a time, for a column."""
    return str(value or "")[:10]


def one_line(value: object, most: int = 200) -> str:
    """A text of others, safe for a terminal and short enough for a row."""
    text = " ".join(clean(str(value or "")).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
