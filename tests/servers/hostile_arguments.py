"""Arguments nobody should send, made from a tool's schema: each case is right but for one thing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]
Arguments = dict[str, Any]


def deep(levels: int = 200) -> object:
    nested: object = "x"
    for _ in range(levels):
        nested = [nested]
    return nested


def texts(outside: str) -> list[str]:
    """Words that try to be more than words."""
    return [
        f"../../../../../../../..{outside}",
        outside,
        "a\x00b\x1b[31m\r\nc",
        "ｆｕｌｌ\u202e \U0001f600 日本 ̈\u200b",
        "-rf --help; $(id) `id` | x && 'q\"",
        "",
        "\ud800",
        "A" * 120_000,
    ]


ODD: list[object] = [None, True, -1, 10**30, 1.5, math.nan, math.inf, "seven", [], [[]], {}, {"a": {"b": 1}}, deep()]


def cases(schema: Schema, outside: str) -> Iterator[Arguments]:
    """Missing and surplus arguments, and every parameter with every kind of wrong value."""
    properties: dict[str, Schema] = schema.get("properties", {})
    valid = {name: plausible(name, properties[name]) for name in schema.get("required", [])}
    yield {}
    yield valid
    yield {**valid, "nobody_knows_this": 1}
    for name, about in properties.items():
        if name in valid:
            yield {key: value for key, value in valid.items() if key != name}
        kinds = _types(about)
        odd: list[object] = [value for value in ODD if not isinstance(value, str) or "string" not in kinds]
        if "string" in kinds:
            odd += texts(outside)
        elif "array" in kinds:
            inner = _variant(about, "array").get("items", {})
            if "string" in _types(inner):
                odd += [[text] for text in texts(outside)] + [["x"] * 5000]
            elif "object" in _types(inner):
                keys = inner.get("properties", {})
                odd += [[{**_object(inner), key: text}] for key in keys for text in texts(outside)]
        for value in odd:
            yield {**valid, name: value}


def plausible(name: str, about: Schema) -> Any:
    """A value the schema takes, and that leads nowhere."""
    if "const" in about:
        return about["const"]
    if "enum" in about:
        return about["enum"][0]
    for kind in ("anyOf", "oneOf"):
        if kind in about:
            return plausible(name, next(option for option in about[kind] if option.get("type") != "null"))
    if about.get("type") == "object":
        return _object(about)
    if about.get("type") == "array":
        return [plausible(name, about.get("items", {}))] * max(1, about.get("minItems", 0))
    if about.get("type") in ("integer", "number"):
        return max(1, about.get("minimum", 1), about.get("exclusiveMinimum", 0) + 1)
    if about.get("type") == "boolean":
        return False
    if "url" in name:
        return "http://127.0.0.1:9/"
    if "date" in name or "time" in name or name in ("start", "end"):
        return "2026-11-16T10:00:00"
    return "note.txt"


def _object(about: Schema) -> Arguments:
    properties = about.get("properties", {})
    return {name: plausible(name, properties[name]) for name in about.get("required", [])}


def _types(about: Schema) -> set[str]:
    kinds = {about["type"]} if isinstance(about.get("type"), str) else set(about.get("type", []))
    for kind in ("anyOf", "oneOf"):
        for option in about.get(kind, []):
            kinds |= _types(option)
    return kinds


def _variant(about: Schema, kind: str) -> Schema:
    if about.get("type") == kind:
        return about
    options = [*about.get("anyOf", []), *about.get("oneOf", [])]
    return next((option for option in options if option.get("type") == kind), {})
