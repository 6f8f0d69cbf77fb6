"""Turns the notation of `prompt_tools` into tools as a server would list them."""

from __future__ import annotations

import json
import re

from annabelle.core.tools import JsonObject, ToolAnnotations, ToolSpec
from prompt_tools import TOOLS

_KINDS = {"str": "string", "num": "number", "int": "integer", "bool": "boolean", "obj": "object"}
# Servers describe their parameters. With these words all tools together weigh what the tools of a full house do.
_WORDS = {
    "text": ", word for word as the user or another tool gave it; no quotes around it",
    "number": " as a plain number without a unit; leave it out to take the usual one",
    "boolean": ", on or off; leave it out when the user said nothing about it",
    "other": ", one entry for each thing that is meant, in the order they were named",
}
_READING = re.compile(r"(?:^|_)(?:list|get|read|search|check|find|query|retrieve|snapshot)(?:_|$)")


def catalogue() -> list[ToolSpec]:
    """All tools of the table, each with its server."""
    tools: list[ToolSpec] = []
    for block in re.split(r"\n(?=\S)", TOOLS.strip()):
        heading, *rest = block.split("\n")
        server, name, description = re.fullmatch(r"(\w+) (\w+): (.+)", heading).groups()  # type: ignore[union-attr]
        tools.append(
            ToolSpec(
                name=name,
                server=server,
                original_name=name.removeprefix(f"{server}_"),
                description=description,
                input_schema=_object(" ".join(line.strip() for line in rest), described=True),
                annotations=ToolAnnotations(read_only=_READING.search(name) is not None, destructive="delete" in name),
            )
        )
    return tools


def _object(notation: str, *, described: bool = False) -> JsonObject:
    properties: dict[str, JsonObject] = {}
    required: list[str] = []
    for field in _split(notation):
        name, kind = field.split(":", 1)
        must = name.endswith("*") or (not described and not name.endswith("?"))
        name = name.rstrip("*?")
        required += [name] if must else []
        kind, _, default = kind.partition("=")
        properties[name] = _kind(kind)
        if described:
            properties[name]["description"] = f"The {name.replace('_', ' ')}{_WORDS[_shape(properties[name])]}"
        if default:
            properties[name]["default"] = json.loads(default)
    schema: JsonObject = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def _shape(schema: JsonObject) -> str:
    kind = schema.get("type", "string")
    return {"string": "text", "number": "number", "integer": "number", "boolean": "boolean"}.get(str(kind), "other")


def _kind(notation: str) -> JsonObject:
    null = notation.endswith("/null")
    notation = notation.removesuffix("/null")
    if notation.endswith("[]"):
        schema: JsonObject = {"type": "array", "items": _kind(notation[:-2])}
    elif notation.startswith("{"):
        schema = _object(notation[1:-1])
    elif "|" in notation:
        schema = {"type": "string", "enum": notation.split("|")}
    elif "/" in notation:
        schema = {"anyOf": [_kind(one) for one in notation.split("/")]}
    else:
        name, bounds = re.fullmatch(r"(\w+)(?:\((.*)\))?", notation).groups()  # type: ignore[union-attr]
        schema = {"type": _KINDS[name]}
        least, _, most = (bounds or "").partition("..")
        schema |= {key: int(value) for key, value in (("minimum", least), ("maximum", most)) if value}
    return {"anyOf": [schema, {"type": "null"}]} if null else schema


def _split(notation: str) -> list[str]:
    """At commas that are not inside braces."""
    fields, depth, start = list[str](), 0, 0
    for place, sign in enumerate(notation + ","):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            fields.append(notation[start:place].strip())
            start = place + 1
    return [field for field in fields if field]
