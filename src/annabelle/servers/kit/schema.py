"""JSON Schema as models and validators like it: no titles, no references in what a provider gets to see."""

from __future__ import annotations

from typing import cast

from pydantic import BaseModel

from annabelle.core.tools import JsonObject

_REFERENCE = "#/$defs/"


def input_schema(model: type[BaseModel]) -> JsonObject:
    """The schema of a tool's arguments. Some providers reject `$ref`, so definitions are written out in place."""
    schema: JsonObject = model.model_json_schema(mode="validation")
    definitions = cast("dict[str, object]", schema.pop("$defs", {}))
    return cast("JsonObject", _tidy(schema, definitions))


def output_schema(model: type[BaseModel]) -> JsonObject:
    """The schema of a tool's structured result."""
    schema: JsonObject = model.model_json_schema(mode="serialization")
    return cast("JsonObject", _tidy(schema, None))


def _tidy(node: object, definitions: dict[str, object] | None, inside: str = "") -> object:
    if isinstance(node, list):
        return [_tidy(item, definitions) for item in cast("list[object]", node)]
    if not isinstance(node, dict):
        return node
    entries = cast("dict[str, object]", node)
    reference = entries.get("$ref")
    if definitions is not None and isinstance(reference, str) and reference.startswith(_REFERENCE):
        target = cast("dict[str, object]", definitions[reference.removeprefix(_REFERENCE)])
        beside = {key: value for key, value in entries.items() if key != "$ref"}
        return _tidy({**target, **beside}, definitions)
    # A title only repeats a field's name, but a property may itself be called "title".
    names_properties = inside in ("properties", "$defs")
    return {
        key: _tidy(value, definitions, key)
        for key, value in entries.items()
        if names_properties or not (key == "title" and isinstance(value, str))
    }
