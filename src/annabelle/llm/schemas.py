"""JSON schemas of tools as models are given them."""

from __future__ import annotations

from typing import cast

from annabelle.core.tools import JsonObject

_DEEPEST = 12
_MOST = 1_000


def inlined(schema: JsonObject) -> JsonObject:
    """The schema without `$ref`: some providers and every small grammar engine reject references."""
    definitions = {
        f"#/{place}/{name}": value
        for place in ("$defs", "definitions")
        for name, value in cast("JsonObject", schema.get(place) or {}).items()
    }
    return cast("JsonObject", _Inlining(definitions).of(schema, 0)) if definitions else schema


class _Inlining:
    """Puts definitions in the place of references, a thousand at most: a few that name each other become millions."""

    def __init__(self, definitions: JsonObject) -> None:
        self._definitions = definitions
        self._left = _MOST

    def of(self, value: object, depth: int) -> object:
        if isinstance(value, dict):
            fields = cast("JsonObject", value)
            reference = fields.get("$ref")
            if isinstance(reference, str):
                beside = {name: item for name, item in fields.items() if name != "$ref"}
                return {**cast("JsonObject", self.of(self._target(reference, depth), depth + 1)), **beside}
            named = ((name, item) for name, item in fields.items() if name not in ("$defs", "definitions"))
            return {name: self.of(item, depth) for name, item in named}
        if isinstance(value, list):
            return [self.of(item, depth) for item in cast("list[object]", value)]
        return value

    def _target(self, reference: str, depth: int) -> object:
        """A schema that refers to itself has no finite form: beyond the limits anything goes."""
        self._left -= 1
        return (self._definitions.get(reference) if depth < _DEEPEST and self._left >= 0 else None) or {}


def signature(schema: JsonObject) -> str:
    """A schema's top level in one short line: `path: string, count?: integer`."""
    required = cast("list[str]", schema.get("required") or [])
    parts: list[str] = []
    for name, field in cast("dict[str, JsonObject]", schema.get("properties") or {}).items():
        kinds = cast("list[object]", field.get("enum") or [])
        kind = "|".join(str(item) for item in kinds[:8]) if kinds else str(field.get("type", "any"))
        parts.append(f"{name}{'' if name in required else '?'}: {kind}")
    return ", ".join(parts)
