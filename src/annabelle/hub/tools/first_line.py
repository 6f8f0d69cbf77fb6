"""How a tool is described in a list of many."""

from __future__ import annotations

from typing import Final

_CHARS: Final = 160


def first_line(description: str) -> str:
    """The first line of a description, cut when it is long."""
    first = description.strip().split("\n", 1)[0]
    return first if len(first) <= _CHARS else first[: _CHARS - 1] + "…"
