"""Removes invisible characters from model requests (GRD-09)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from annabelle.core.text import remove_invisible_json
from annabelle.llm.types import ModelRequest

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage


_TEXTS = ("content", "args")
_SIGNED = "thinking"
"""A provider accepts its own reasoning only unchanged."""


def remove_invisible_from_request(request: ModelRequest) -> tuple[ModelRequest, int]:
    """Returns the cleaned request, and how many characters were removed from messages, results and tools."""
    found = 0
    messages: list[ModelMessage] = []
    for message in request.messages:
        parts: list[object] = []
        for part in message.parts:
            changes: dict[str, object] = {}
            for name in _TEXTS if part.part_kind != _SIGNED else ():
                value, count = remove_invisible_json(getattr(part, name, None))
                if count:
                    changes[name] = value
                    found += count
            parts.append(replace(part, **changes) if changes else part)
        messages.append(message if parts == list(message.parts) else replace(message, parts=parts))
    tools = list(request.tools)
    for place, tool in enumerate(tools):
        # Nearly all tools are plain ASCII, and that is faster to check than walking the schema.
        if tool.description.isascii() and json.dumps(tool.input_schema, ensure_ascii=False).isascii():
            continue
        told, count = remove_invisible_json({"description": tool.description, "input_schema": tool.input_schema})
        if count:
            tools[place] = tool.model_copy(update=cast("dict[str, object]", told))
            found += count
    return (replace(request, messages=messages, tools=tools), found) if found else (request, 0)
