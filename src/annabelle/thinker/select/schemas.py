"""Tools as the model is shown them: the same schema in fewer words. The hub checks calls against the whole one."""

from __future__ import annotations

import re
from typing import cast

from annabelle.core.tools import JsonObject, ToolSpec

_LONGEST_DESCRIPTION = 320
_LONGEST_HINT = 140
_LONGEST_DEFAULT = 40
_LONGEST_TEXT = 1_000
_DEEPEST = 20
_KEPT = 2_000
_NOT_SHOWN = frozenset({"title", "$schema", "$id", "$comment", "examples", "example", "readOnly", "writeOnly"})
_SENTENCE_END = re.compile(r"[.!?](?=\s)")


class SlimSpecs:
    """Slimmed tools by what they were before: made once, and the same in every turn."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[ToolSpec, ToolSpec]] = {}

    def of(self, tool: ToolSpec) -> ToolSpec:
        known = self._made.get(id(tool))
        if known is not None and known[0] is tool:
            return known[1]
        if len(self._made) > _KEPT:
            self._made.clear()
        made = slimmed(tool)
        self._made[id(tool)] = tool, made
        return made


def slimmed(tool: ToolSpec) -> ToolSpec:
    """The tool with what costs more than it tells left out; every call that was valid still is."""
    return tool.model_copy(
        update={
            "description": shortened(tool.description, _LONGEST_DESCRIPTION),
            "input_schema": _slim(tool.input_schema, 0),
            "output_schema": None,
            "keywords": (),
        }
    )


def shortened(text: str, most: int) -> str:
    """The sentences at its beginning that fit, or what fits of the first one."""
    text = text.strip()
    if len(text) <= most:
        return text
    ends = [found.end() for found in _SENTENCE_END.finditer(text[: most + 1])]
    return text[: ends[-1]] if ends and ends[-1] > most // 4 else text[: most - 1].rstrip() + "…"


def _slim(schema: JsonObject, depth: int) -> JsonObject:
    """One level of a schema. Names of properties are not words of the schema, whatever they are."""
    slim: JsonObject = {}
    for key, value in schema.items():
        if key in _NOT_SHOWN or _tells_nothing(key, value):
            continue
        if key == "description" and isinstance(value, str):
            slim[key] = shortened(value, _LONGEST_HINT)
        elif key in ("properties", "$defs", "definitions", "patternProperties") and isinstance(value, dict):
            inner = cast("JsonObject", value)
            slim[key] = {name: _deeper(part, depth) for name, part in inner.items()}
        elif key in ("items", "additionalProperties", "not", "if", "then", "else"):
            slim[key] = _deeper(value, depth)
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
            slim[key] = [_deeper(part, depth) for part in cast("list[object]", value)]
        else:
            slim[key] = value
    return slim


def _deeper(value: object, depth: int) -> object:
    if isinstance(value, dict) and depth < _DEEPEST:
        return _slim(cast("JsonObject", value), depth + 1)
    return cast("object", value)


def _tells_nothing(key: str, value: object) -> bool:
    """A default of nothing, a long one, and bounds nobody gets near to."""
    if key == "default":
        return value in (None, "", [], {}) or len(str(value)) > _LONGEST_DEFAULT
    if key == "maxLength":
        return isinstance(value, int) and value >= _LONGEST_TEXT
    return key == "minLength" and value in (0, 1)
