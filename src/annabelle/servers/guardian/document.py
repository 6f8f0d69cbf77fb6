"""The texts of nested data as one: every string with its JSON path, values in their order, then the keys.

Values stand one after the other without anything between but a line's end, so an order that is split across fields
reads as one.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final, cast

LONGEST_PATH: Final = 200
MOST_FIELDS: Final = 50_000
LONGEST_JSON: Final = 2_000_000
"""A longer text is not parsed as JSON: its objects would take many times its size. It is read as it stands."""


@dataclass(frozen=True, slots=True)
class Document:
    """All texts joined, and where each of them begins. `left_out` counts the fields beyond the bound."""

    text: str
    starts: tuple[int, ...]
    paths: tuple[str, ...]
    left_out: int = 0

    def path_at(self, position: int) -> str:
        """The path of the text at a position of the whole."""
        place = bisect_right(self.starts, position) - 1
        return self.paths[place] if place >= 0 else "$"


def read_document(content: object) -> Document:
    """Every string of `content`. A text that is JSON is read as what it holds: escapes must not hide anything."""
    values: list[tuple[str, str]] = []
    keys: list[tuple[str, str]] = []
    left_out = 0
    waiting: list[tuple[str, object]] = [("$", _parsed(content))]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, str):
            if len(values) < MOST_FIELDS:
                values.append((path, node))
            else:
                left_out += 1
        elif isinstance(node, dict):
            entries = [(_below(path, f".{key}"), key, value) for key, value in cast("dict[str, object]", node).items()]
            keys.extend((f"{inner}~", key) for inner, key, _ in entries if len(keys) < MOST_FIELDS)
            waiting.extend((inner, value) for inner, _, value in reversed(entries))
        elif isinstance(node, list):
            items = cast("list[object]", node)
            waiting.extend((_below(path, f"[{place}]"), items[place]) for place in range(len(items) - 1, -1, -1))
    return _joined(values + keys, left_out)


def _joined(fields: list[tuple[str, str]], left_out: int) -> Document:
    starts: list[int] = []
    position = 0
    for _, text in fields:
        starts.append(position)
        position += len(text) + 1
    return Document("\n".join(text for _, text in fields), tuple(starts), tuple(path for path, _ in fields), left_out)


def _below(path: str, step: str) -> str:
    return path if len(path) >= LONGEST_PATH else (path + step)[:LONGEST_PATH]


def _parsed(content: object) -> object:
    if not isinstance(content, str) or len(content) > LONGEST_JSON or content.lstrip()[:1] not in ("{", "["):
        return content
    try:
        return cast("object", json.loads(content))
    except (ValueError, RecursionError):
        return content
