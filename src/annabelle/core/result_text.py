"""A tool's result in words: a model also reads what its next call needs, a person reads an answer (FST-05)."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, cast

from annabelle.core.tools import JsonObject, ToolResult

_for_person: ContextVar[bool] = ContextVar("annabelle_result_for_person", default=False)
_MORE: Final = "There is more. Ask for something narrower to see it."
# What only a machine needs of a structure: ids, places to read on, and labels that the hub puts in words.
_INNER_FIELD: Final = re.compile(r"(?:.*_)?(?:id|ids|token|page|trust)", re.IGNORECASE)
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)[\d:.]*(?:Z|[+-]\d\d:\d\d)?")


def for_model(text: str, person: str = "") -> str:
    """`text` where a model reads the result, `person` where a person does. For ids and the like."""
    return person if _for_person.get() else text


def read_on(how: str) -> str:
    """The line that ends a list of which only a part is shown: a model is told how to go on."""
    return for_model(how, _MORE)


def render_for_person(render: Callable[[], str]) -> str:
    reset = _for_person.set(True)
    try:
        return render()
    finally:
        _for_person.reset(reset)


def render_both(render: Callable[[], str]) -> tuple[str, str | None]:
    """The text for a model, and the one for a person where it is another one."""
    text, display = render(), render_for_person(render)
    return text, None if display == text else display


def format_size(count: float) -> str:
    """Bytes as people say them."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size / 10:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} bytes"


def make_result(render: Callable[[], str], structured: JsonObject | None = None) -> ToolResult:
    """The result of a tool of the hub, in words for both."""
    text, display = render_both(render)
    return ToolResult(text=text, display=display, structured=structured)


def describe(data: JsonObject) -> str:
    """A structure in plain lines, for results that have no words of their own."""
    return "\n".join(_describe_fields(data)) or "Nothing."


def _describe_fields(data: JsonObject) -> list[str]:
    lines: list[str] = []
    for name, value in data.items():
        if _is_shown(name, value):
            label = name.replace("_", " ").capitalize()
            lines += _describe_value(label, value)
        elif isinstance(value, list) and not value:
            lines.append(f"No {name.replace('_', ' ')}.")
    return lines


def _describe_value(label: str, value: object) -> list[str]:
    if value is True:
        return [f"{label}."]
    if isinstance(value, list):
        rows = cast("list[object]", value)
        if not any(isinstance(row, dict) for row in rows):
            return [f"{label}: {', '.join(map(_format_scalar, rows))}"]
        return [f"{label}:", *(f"- {_describe_row(row)}" for row in rows)]
    if isinstance(value, dict):
        return [f"{label}: {_describe_row(cast('JsonObject', value))}"]
    said = _format_scalar(value)
    return [f"{label}:", said] if "\n" in said else [f"{label}: {said}"]


def _describe_row(row: object) -> str:
    """The first value as it is, the others with their names."""
    if not isinstance(row, dict):
        return _format_scalar(row)
    shown = [(name, value) for name, value in cast("JsonObject", row).items() if _is_shown(name, value)]
    first, *rest = [(name, _format_inner(value)) for name, value in shown] or [("", "(nothing)")]
    facts = [f"{name.replace('_', ' ')} {said}" for name, said in rest]
    return first[1] + (f" ({', '.join(facts)})" if facts else "")


def _format_inner(value: object) -> str:
    if isinstance(value, dict):
        return _describe_row(cast("JsonObject", value))
    if isinstance(value, list):
        return ", ".join(map(_describe_row, cast("list[object]", value)))
    return _format_scalar(value)


def _format_scalar(value: object) -> str:
    return "yes" if value is True else _TIME.sub(r"\1 \2", str(value))


def _is_shown(name: str, value: object) -> bool:
    return value not in (None, False, "", [], {}) and _INNER_FIELD.fullmatch(name) is None
