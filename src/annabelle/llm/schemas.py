"""JSON schemas of tools as models are given them."""

from __future__ import annotations

from typing import cast

from annabelle.core.tools import JsonObject

_DEEPEST = 12


def inlined(schema: JsonObject) -> JsonObject:
    """The schema without `$ref`: some providers and every small grammar engine reject references."""
    definitions = {
        f"#/{place}/{name}": value
        for place in ("$defs", "definitions")
        for name, value in cast("JsonObject", schema.get(place) or {}).items()
    }
    if not definitions:
        return schema
    result = _resolve(schema, definitions, 0)
    return cast("JsonObject", result)


def _resolve(value: object, definitions: JsonObject, depth: int) -> object:
    if isinstance(value, dict):
        fields = cast("JsonObject", value)
        reference = fields.get("$ref")
        if isinstance(reference, str):
            # A schema that refers to itself has no finite form: below the limit anything goes.
            target = definitions.get(reference) if depth < _DEEPEST else None
            beside = {name: item for name, item in fields.items() if name != "$ref"}
            found = _resolve(target or dict[str, object](), definitions, depth + 1)
            return {**cast("JsonObject", found), **beside}
        return {
            name: _resolve(item, definitions, depth)
            for name, item in fields.items()
            if name not in ("$defs", "definitions")
        }
    if isinstance(value, list):
        return [_resolve(item, definitions, depth) for item in cast("list[object]", value)]
    return value


def signature(schema: JsonObject) -> str:
    """A schema's top level in one short line: `path: string, count?: integer`."""
    required = cast("list[str]", schema.get("required") or [])
    parts: list[str] = []
    for name, field in cast("dict[str, JsonObject]", schema.get("properties") or {}).items():
        kinds = cast("list[object]", field.get("enum") or [])
        kind = "|".join(str(item) for item in kinds[:8]) if kinds else str(field.get("type", "any"))
        parts.append(f"{name}{'' if name in required else '?'}: {kind}")
    return ", ".join(parts)
