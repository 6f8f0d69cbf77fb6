"""Whether a value fits a JSON schema, as far as shapes go: types, choices, fields and items.

Formats, lengths and ranges are not looked at: no change of shape could mend them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from annabelle.core.tools import JsonObject

_DEEPEST: Final = 40


def options(schema: JsonObject) -> list[JsonObject]:
    """The alternatives of a schema that is a choice between several."""
    for name in ("anyOf", "oneOf"):
        found = schema.get(name)
        if isinstance(found, list):
            return [cast("JsonObject", one) for one in cast("list[object]", found) if isinstance(one, Mapping)]
    return []


def properties(schema: JsonObject) -> JsonObject:
    """The fields a schema describes."""
    found = schema.get("properties")
    return cast("JsonObject", found) if isinstance(found, Mapping) else {}


def required(schema: JsonObject) -> list[str]:
    """The fields a schema can not do without."""
    found = schema.get("required")
    return [name for name in cast("list[object]", found) if isinstance(name, str)] if isinstance(found, list) else []


def kinds(schema: JsonObject) -> frozenset[str]:
    """The types a schema names; none when it leaves them open."""
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list):
        return frozenset(str(one) for one in cast("list[object]", named))
    listed = schema.get("enum")
    if isinstance(listed, list) and listed:
        return frozenset(_kind(one) for one in cast("list[object]", listed))
    return frozenset()


def fits(value: object, schema: JsonObject, depth: int = 0) -> bool:
    """Whether the value may go out as it is."""
    if depth > _DEEPEST:
        return True
    choices = options(schema)
    if choices:
        return any(fits(value, choice, depth + 1) for choice in choices)
    wanted = kinds(schema)
    if wanted and not _is_one_of(value, wanted):
        return False
    listed = schema.get("enum")
    if isinstance(listed, list) and not any(_equal(value, one) for one in cast("list[object]", listed)):
        return False
    if "const" in schema and not _equal(value, schema["const"]):
        return False
    if isinstance(value, dict):
        return _fields_fit(cast("JsonObject", value), schema, depth)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, Mapping):
        return all(fits(one, cast("JsonObject", items), depth + 1) for one in cast("list[object]", value))
    return True


def _fields_fit(value: JsonObject, schema: JsonObject, depth: int) -> bool:
    described = properties(schema)
    if any(name not in value for name in required(schema)):
        return False
    if schema.get("additionalProperties") is False and any(name not in described for name in value):
        return False
    known = ((item, described[name]) for name, item in value.items() if name in described)
    return all(fits(item, cast("JsonObject", field), depth + 1) for item, field in known if isinstance(field, Mapping))


def _is_one_of(value: object, wanted: frozenset[str]) -> bool:
    kind = _kind(value)
    if kind in wanted or (kind == "integer" and "number" in wanted):
        return True
    return isinstance(value, float) and value.is_integer() and "integer" in wanted


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _equal(one: object, other: object) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)
