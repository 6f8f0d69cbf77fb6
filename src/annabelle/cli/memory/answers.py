"""How an answer of the memory is printed: as it stands for machines, in its own words for people."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Annotated, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from annabelle.cli.output import print_json, print_line
from annabelle.cli.screen import clean
from annabelle.core.home import Home
from annabelle.core.memory import FactCategory
from annabelle.core.settings import load_settings
from annabelle.core.tools import JsonObject, ToolResult

Agent = Annotated[str | None, typer.Option("--agent", help="The memory of this agent instead of the usual one's.")]
OfCategory = Annotated[FactCategory | None, typer.Option("--category", "-c", help="Only facts of this category.")]

_NAME_WIDTH = 18


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


def print_fields(fields: list[tuple[str, str]]) -> None:
    """Names and values under each other."""
    for name, value in fields:
        print_line(f"{name:<{_NAME_WIDTH}}{value}")


def day(value: object) -> str:
    """The day of a time, for a column."""
    return moment(value)[:10]


def moment(value: object) -> str:
    """A time to the minute, where the user lives."""
    if not value:
        return ""
    return datetime.fromisoformat(str(value)).astimezone(_zone()).strftime("%Y-%m-%d %H:%M")


def size(count: object) -> str:
    """Bytes as people read them."""
    number = float(str(count or 0))
    return f"{number / 1e6:.1f} MB" if number >= 1e5 else f"{number / 1e3:.1f} kB"


def one_line(value: object, most: int = 200) -> str:
    """A text of others, safe for a terminal and short enough for a row."""
    text = " ".join(clean(str(value or "")).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


@cache
def _zone() -> ZoneInfo:
    try:
        return ZoneInfo(load_settings(Home.from_environment()).user_timezone)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return ZoneInfo("UTC")  # what reads the setting for its work says that it is wrong
