"""Normalises the arguments of a call by the tool's JSON schema (LOOP-03)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from annabelle.core.tools import JsonObject
from annabelle.llm.model_tools import inline_references

_MAX_CHECK_DEPTH: Final = 40


def schema_options(schema: JsonObject) -> list[JsonObject]:
    """The alternatives of a schema with `anyOf` or `oneOf`."""
    for name in ("anyOf", "oneOf"):
        found = schema.get(name)
        if isinstance(found, list):
            return [cast("JsonObject", one) for one in cast("list[object]", found) if isinstance(one, Mapping)]
    return []


def schema_properties(schema: JsonObject) -> JsonObject:
    found = schema.get("properties")
    return cast("JsonObject", found) if isinstance(found, Mapping) else {}


def required_fields(schema: JsonObject) -> list[str]:
    found = schema.get("required")
    return [name for name in cast("list[object]", found) if isinstance(name, str)] if isinstance(found, list) else []


def schema_types(schema: JsonObject) -> frozenset[str]:
    """The types a schema allows; empty if it does not restrict them."""
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list):
        return frozenset(str(one) for one in cast("list[object]", named))
    listed = schema.get("enum")
    if isinstance(listed, list) and listed:
        return frozenset(_json_type(one) for one in cast("list[object]", listed))
    return frozenset()


def fits_schema(value: object, schema: JsonObject, depth: int = 0) -> bool:
    """Whether the value fits the schema, as far as types, enums and fields go."""
    if depth > _MAX_CHECK_DEPTH:
        return True
    choices = schema_options(schema)
    if choices:
        return any(fits_schema(value, choice, depth + 1) for choice in choices)
    wanted = schema_types(schema)
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
        return all(fits_schema(one, cast("JsonObject", items), depth + 1) for one in cast("list[object]", value))
    return True


def _fields_fit(value: JsonObject, schema: JsonObject, depth: int) -> bool:
    described = schema_properties(schema)
    if any(name not in value for name in required_fields(schema)):
        return False
    if schema.get("additionalProperties") is False and any(name not in described for name in value):
        return False
    known = ((item, described[name]) for name, item in value.items() if name in described)
    return all(
        fits_schema(item, cast("JsonObject", field), depth + 1) for item, field in known if isinstance(field, Mapping)
    )


def _is_one_of(value: object, wanted: frozenset[str]) -> bool:
    kind = _json_type(value)
    if kind in wanted or (kind == "integer" and "number" in wanted):
        return True
    return isinstance(value, float) and value.is_integer() and "integer" in wanted


def _json_type(value: object) -> str:
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


CHAT_ID: Final = "chat_id"
_MAX_COERCE_DEPTH = 30
_WHOLE = re.compile(r"[+-]?\d{1,300}")


@dataclass(frozen=True, slots=True)
class NormalisedArguments:
    """The arguments, and the names of the fields that were changed, added or dropped."""

    arguments: JsonObject
    changed: tuple[str, ...] = ()


def normalise_arguments(arguments: JsonObject, schema: JsonObject, chat_id: str) -> NormalisedArguments:
    """Coerce the arguments to the schema. Never raises: what cannot be read stays as it is."""
    whole = _inline_schema(schema)
    given = dict(arguments)
    needed = CHAT_ID in schema_properties(whole) and CHAT_ID in required_fields(whole)
    if needed and given.get(CHAT_ID) in (None, "") and chat_id:
        given[CHAT_ID] = chat_id
    result = _coerce_fields(given, whole, 0)
    names = [*arguments, *(name for name in result if name not in arguments)]
    changed = [name for name in names if not _is_same(arguments, result, name)]
    return NormalisedArguments(result, tuple(changed))


def _inline_schema(schema: JsonObject) -> JsonObject:
    """The schema without references; unchanged if its definitions are invalid."""
    for place in ("$defs", "definitions"):
        definitions = schema.get(place, {})
        if not isinstance(definitions, Mapping):
            return schema
        if not all(isinstance(one, Mapping) for one in cast("JsonObject", definitions).values()):
            return schema
    return inline_references(schema)


def _is_same(before: JsonObject, after: JsonObject, name: str) -> bool:
    # Compared as JSON, because True == 1 in Python.
    if name not in before or name not in after:
        return False
    return json.dumps(before[name], default=str) == json.dumps(after[name], default=str)


def _coerce(value: object, schema: JsonObject, depth: int) -> object:
    if depth > _MAX_COERCE_DEPTH:
        return value
    choices = schema_options(schema)
    if choices:
        if any(fits_schema(value, choice) for choice in choices):
            chosen = next(choice for choice in choices if fits_schema(value, choice))
            return _coerce_contents(value, chosen, depth)
        for choice in choices:
            tried = _coerce(value, choice, depth + 1)
            if fits_schema(tried, choice):
                return tried
        return value
    return _coerce_contents(_coerce_value(value, schema, depth), schema, depth)


def _coerce_contents(value: object, schema: JsonObject, depth: int) -> object:
    """Coerce the fields or items of a value."""
    if isinstance(value, dict) and schema_properties(schema):
        return _coerce_fields(cast("JsonObject", value), schema, depth + 1)
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        items = cast("JsonObject", schema["items"])
        return [_coerce(item, items, depth + 1) for item in cast("list[object]", value)]
    return cast("object", value)


def _coerce_fields(value: JsonObject, schema: JsonObject, depth: int) -> JsonObject:
    described, needed = schema_properties(schema), required_fields(schema)
    others = schema.get("additionalProperties")
    kept: JsonObject = {}
    for name, item in value.items():
        if name not in described:
            # Without `properties` any field is allowed.
            if not described or others is True or (isinstance(others, dict) and others):
                kept[name] = item
            continue
        field = _as_object(described[name])
        if name not in needed and _is_nothing(item, field):
            continue
        kept[name] = _coerce(item, field, depth + 1)
    return kept


def _is_nothing(value: object, schema: JsonObject) -> bool:
    """A null or an empty text that the schema does not allow."""
    return (value is None or value == "") and not isinstance(value, bool) and not fits_schema(value, schema)


def _coerce_value(value: object, schema: JsonObject, depth: int) -> object:
    if fits_schema(value, schema):
        return value
    # A number instead of a text stays: 7 may be a mistake for something else, such as a path.
    return _coerce_text(value, schema, schema_types(schema), depth) if isinstance(value, str) else value


def _coerce_text(text: str, schema: JsonObject, wanted: frozenset[str], depth: int) -> object:
    listed = schema.get("enum")
    named = cast("list[object]", listed) if isinstance(listed, list) else []
    alike = [item for item in named if isinstance(item, str) and item.casefold() == text.strip().casefold()]
    if len(alike) == 1:
        return alike[0]
    if "string" in wanted or not wanted:
        return text
    plain = text.strip()
    if "boolean" in wanted and plain.lower() in ("true", "false"):
        return plain.lower() == "true"
    if wanted & {"integer", "number"} and (number := _parse_number(plain, whole="number" not in wanted)) is not None:
        return number
    if wanted & {"object", "array"}:
        return _parse_structure(text, schema, wanted, depth)
    return text


def _parse_structure(text: str, schema: JsonObject, wanted: frozenset[str], depth: int) -> object:
    try:
        parsed = cast("object", json.loads(text))
    except (ValueError, RecursionError):
        parsed = None
    if (isinstance(parsed, dict) and "object" in wanted) or (isinstance(parsed, list) and "array" in wanted):
        return cast("object", parsed)
    if "array" in wanted and text.strip():
        alone = [_coerce(text, _as_object(schema.get("items")), depth + 1)]
        if fits_schema(alone, schema):
            return alone
    return text


def _parse_number(text: str, *, whole: bool) -> int | float | None:
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number) or "_" in text:
        return None
    if number.is_integer() and abs(number) < 2**53:
        return int(number) if whole else number
    return None if whole else number


def _as_object(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, Mapping) else {}
