"""What of a tool is looked at: its name, what it says of itself, its parameters, and where it belongs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from annabelle.core.tools import ToolSpec
from annabelle.toolbox.ranking.words import folded, words

_TAG = re.compile(r"^\[([^\]]*)\]\s*")
_DEEPEST = 3
_MOST_PARAMETERS = 60
_LONGEST = 4_000


@dataclass(frozen=True, slots=True)
class ToolFields:
    """The words of one tool by where they stand, and the two texts its vectors are made of."""

    name: tuple[str, ...]
    description: tuple[str, ...]
    parameters: tuple[str, ...]
    hints: tuple[str, ...]
    place: tuple[str, ...]
    title: str
    text: str


def fields_of(tool: ToolSpec) -> ToolFields:
    """Its server's tag in the description is no part of what the tool says."""
    tag = _TAG.match(tool.description)
    said = folded(tool.description[tag.end() if tag else 0 :][:_LONGEST])
    own = words(folded(tool.original_name or tool.name))
    parameters: list[str] = []
    hints: list[str] = []
    for count, (name, hint) in enumerate(_parameters(tool.input_schema, 0)):
        if count >= _MOST_PARAMETERS:
            break
        parameters += words(folded(name))
        hints += words(folded(hint))
    place = words(folded(f"{tag.group(1) if tag else ''} {tool.server} {tool.group}"))
    title = " ".join(own)
    return ToolFields(
        name=tuple(own),
        description=tuple(words(said)),
        parameters=tuple(parameters),
        hints=tuple(hints),
        place=tuple(dict.fromkeys(place)),
        title=title,
        text=f"{title}: {said}",
    )


def _parameters(schema: object, depth: int) -> Iterator[tuple[str, str]]:
    """Names of parameters with what is said of them, also of those inside others. A schema may hold anything."""
    if depth > _DEEPEST or not isinstance(schema, dict):
        return
    properties = cast("dict[str, object]", schema).get("properties")
    if not isinstance(properties, dict):
        return
    for name, inner in cast("dict[object, object]", properties).items():
        details = cast("dict[str, object]", inner) if isinstance(inner, dict) else {}
        said, choices = details.get("description"), details.get("enum")
        texts = [said] if isinstance(said, str) else []
        if isinstance(choices, list):
            texts += [str(choice) for choice in cast("list[object]", choices)[:20]]
        yield str(name), " ".join(texts)[:_LONGEST]
        yield from _parameters(details, depth + 1)
        yield from _parameters(details.get("items"), depth + 1)
