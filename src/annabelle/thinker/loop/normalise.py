"""Brings the arguments of a call into the shape its tool asks for (LOOP-03).

Models write "true" for true and "5" for 5, fill optional fields with null, and invent fields. What fits the schema
stays as it is; what does not is changed only where there is one way to read it. What is left over is the server's
to refuse.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from annabelle.core.tools import JsonObject
from annabelle.llm.schemas import inlined
from annabelle.thinker.loop.schema_fit import fits, kinds, options, properties, required

CHAT_ID: Final = "chat_id"
_DEEPEST = 30
_WHOLE = re.compile(r"[+-]?\d{1,300}")


@dataclass(frozen=True, slots=True)
class Normalised:
    """The arguments that go out, and the names of the fields that were changed, added or dropped."""

    arguments: JsonObject
    changed: tuple[str, ...] = ()


def normalised(arguments: JsonObject, schema: JsonObject, chat_id: str) -> Normalised:
    """The arguments as the tool wants them. Never raises: what can not be read stays as it was."""
    whole = _whole(schema)
    given = dict(arguments)
    needed = CHAT_ID in properties(whole) and CHAT_ID in required(whole)
    if needed and given.get(CHAT_ID) in (None, "") and chat_id:
        given[CHAT_ID] = chat_id
    result = _fields(given, whole, 0)
    names = [*arguments, *(name for name in result if name not in arguments)]
    changed = [name for name in names if not _same(arguments, result, name)]
    return Normalised(result, tuple(changed))


def _whole(schema: JsonObject) -> JsonObject:
    """The schema without references; one whose definitions make no sense is taken as it is."""
    for place in ("$defs", "definitions"):
        definitions = schema.get(place, {})
        if not isinstance(definitions, Mapping):
            return schema
        if not all(isinstance(one, Mapping) for one in cast("JsonObject", definitions).values()):
            return schema
    return inlined(schema)


def _same(before: JsonObject, after: JsonObject, name: str) -> bool:
    # The type counts: True == 1 in Python, and not on the wire.
    if name not in before or name not in after:
        return False
    return json.dumps(before[name], default=str) == json.dumps(after[name], default=str)


def _fit(value: object, schema: JsonObject, depth: int) -> object:
    if depth > _DEEPEST:
        return value
    choices = options(schema)
    if choices:
        if any(fits(value, choice) for choice in choices):
            chosen = next(choice for choice in choices if fits(value, choice))
            return _inside(value, chosen, depth)
        for choice in choices:
            tried = _fit(value, choice, depth + 1)
            if fits(tried, choice):
                return tried
        return value
    return _inside(_read(value, schema, depth), schema, depth)


def _inside(value: object, schema: JsonObject, depth: int) -> object:
    """The same with what it holds brought into shape."""
    if isinstance(value, dict) and properties(schema):
        return _fields(cast("JsonObject", value), schema, depth + 1)
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        items = cast("JsonObject", schema["items"])
        return [_fit(item, items, depth + 1) for item in cast("list[object]", value)]
    return cast("object", value)


def _fields(value: JsonObject, schema: JsonObject, depth: int) -> JsonObject:
    described, needed = properties(schema), required(schema)
    others = schema.get("additionalProperties")
    kept: JsonObject = {}
    for name, item in value.items():
        if name not in described:
            # Without `properties` nothing is said about the fields at all.
            if not described or others is True or (isinstance(others, dict) and others):
                kept[name] = item
            continue
        field = _object(described[name])
        if name not in needed and _is_nothing(item, field):
            continue
        kept[name] = _fit(item, field, depth + 1)
    return kept


def _is_nothing(value: object, schema: JsonObject) -> bool:
    """A null, or an empty text where no text is wanted, that the schema has no use for."""
    return (value is None or value == "") and not isinstance(value, bool) and not fits(value, schema)


def _read(value: object, schema: JsonObject, depth: int) -> object:
    """A value of the wrong type as the one it stands for."""
    if fits(value, schema):
        return value
    # A number where a text is wanted is left: 7 may be a slip for something else, as for a path.
    return _read_text(value, schema, kinds(schema), depth) if isinstance(value, str) else value


def _read_text(text: str, schema: JsonObject, wanted: frozenset[str], depth: int) -> object:
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
    if wanted & {"integer", "number"} and (number := _number(plain, whole="number" not in wanted)) is not None:
        return number
    if wanted & {"object", "array"}:
        return _structure(text, schema, wanted, depth)
    return text


def _structure(text: str, schema: JsonObject, wanted: frozenset[str], depth: int) -> object:
    try:
        parsed = cast("object", json.loads(text))
    except (ValueError, RecursionError):
        parsed = None
    if (isinstance(parsed, dict) and "object" in wanted) or (isinstance(parsed, list) and "array" in wanted):
        return cast("object", parsed)
    if "array" in wanted and text.strip():
        alone = [_fit(text, _object(schema.get("items")), depth + 1)]
        if fits(alone, schema):
            return alone
    return text


def _number(text: str, *, whole: bool) -> int | float | None:
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


def _object(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, Mapping) else {}
