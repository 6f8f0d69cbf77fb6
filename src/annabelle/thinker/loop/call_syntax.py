"""Reads one tool call out of a piece of text: JSON in the shapes models use, a Python call, or tags (LOOP-04)."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.thinker.loop.schema_fit import properties

Known = Mapping[str, ToolSpec]

_NAMES: Final = ("name", "tool", "tool_name", "function_name", "function", "recipient_name")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "params", "input", "tool_input")
_PREFIX: Final = re.compile(r"^(?:functions|tools|default_api)\.")
_PYTHON: Final = re.compile(r"^\s*(?:print\()?\s*((?:functions\.|tools\.|default_api\.)?\w+)\(")
_PARAMETER: Final = re.compile(r"<parameter(?:=|\s+name=[\"']?)([\w.-]+)[\"']?\s*>(.*?)</parameter>", re.DOTALL)
_LONGEST: Final = 100_000
_DEEPEST: Final = 60
_WORDS: Final[Mapping[str, object]] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class LeakedCall:
    """A call that was written instead of made."""

    name: str
    arguments: JsonObject = field(default_factory=dict[str, object])


def calls_in_json(value: object, known: Known, *, bare: bool = False) -> list[LeakedCall]:
    """The calls a parsed text stands for. With `bare`, an object without arguments is a call too."""
    if isinstance(value, list):
        rows = cast("list[object]", value)
        found = [calls_in_json(row, known, bare=bare) for row in rows if not isinstance(row, list)]
        return [call for calls in found for call in calls] if len(found) == len(rows) and all(found) else []
    if not isinstance(value, dict):
        return []
    fields = cast("JsonObject", value)
    inner = fields.get("function")
    if isinstance(inner, dict):
        fields = cast("JsonObject", inner)
    name = next((_plain(fields[key]) for key in _NAMES if isinstance(fields.get(key), str)), "")
    if name not in known:
        return []
    given = next((fields[key] for key in _ARGUMENTS if key in fields), "{}" if bare else None)
    arguments = _arguments(given)
    return [] if arguments is None else [LeakedCall(name, arguments)]


def calls_in_text(text: str, known: Known) -> list[LeakedCall]:
    """The calls in what stands between tags or in a fenced block: one JSON value, or Python calls line by line."""
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return []
    if text[0] in "{[":
        return calls_in_json(parsed(text), known, bare=True)
    whole = python_call(text, known)
    if whole is not None:
        return [whole]
    lines = [line for line in text.splitlines() if line.strip()]
    found = [python_call(line, known) for line in lines]
    return [call for call in found if call is not None] if all(found) else []


def call_of(name: str, body: str, known: Known) -> LeakedCall | None:
    """A call whose name stands in its tag: the body is a JSON object, tagged parameters, or empty."""
    name, body = _plain(name), body.strip()
    if name not in known:
        return None
    tagged = {match[1]: match[2].strip() for match in _PARAMETER.finditer(body)}
    if tagged:
        return LeakedCall(name, cast("JsonObject", tagged))
    arguments = _arguments(body) if body else {}
    return None if arguments is None else LeakedCall(name, arguments)


def python_call(text: str, known: Known) -> LeakedCall | None:
    """`name(path="a.txt", n=3)`, with plain values only."""
    opening = _PYTHON.match(text)
    if opening is None or _plain(opening[1]) not in known or len(text) > _LONGEST:
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "print" and tree.args:
        tree = tree.args[0]
    if not isinstance(tree, ast.Call):
        return None
    name = _plain(opening[1])
    places = list(properties(known[name].input_schema))
    if len(tree.args) > len(places) or any(keyword.arg is None for keyword in tree.keywords):
        return None
    written = [*zip(places, tree.args, strict=False), *((str(one.arg), one.value) for one in tree.keywords)]
    try:
        return LeakedCall(name, {key: _literal(node) for key, node in written})
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None


def parsed(text: str) -> object:
    """The JSON value a text is, or None."""
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return None


def _arguments(value: object) -> JsonObject | None:
    """Arguments as an object; some models write them as JSON in a string."""
    if isinstance(value, str):
        value = parsed(value) if value.strip() else {}
    if not isinstance(value, dict):
        return None
    arguments = cast("JsonObject", value)
    return None if _too_deep(arguments) else arguments


def _too_deep(value: object, depth: int = 0) -> bool:
    """Deeper than any tool wants it, and than a conversation can be written down."""
    if isinstance(value, dict):
        inner: Iterable[object] = cast("JsonObject", value).values()
    elif isinstance(value, list):
        inner = cast("list[object]", value)
    else:
        return False
    return depth >= _DEEPEST or any(_too_deep(one, depth + 1) for one in inner)


def _literal(node: ast.expr) -> object:
    if isinstance(node, ast.Name) and node.id in _WORDS:
        return _WORDS[node.id]
    value = cast("object", ast.literal_eval(node))
    json.dumps(value, allow_nan=False)  # a set, bytes or a complex number is no argument
    return value


def _plain(name: object) -> str:
    return _PREFIX.sub("", str(name)).strip()
