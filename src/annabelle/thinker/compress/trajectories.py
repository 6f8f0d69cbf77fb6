"""Reads recorded conversations with tool calls: OpenAI's message format, one conversation per line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from annabelle.core.errors import InvalidArguments
from annabelle.core.tools import JsonObject


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One recorded conversation."""

    id: str
    messages: list[ModelMessage]


def read_trajectories(path: Path) -> Iterator[Trajectory]:
    """The conversations of a file of lines, packed or not; InvalidArguments names the line that is none."""
    try:
        with _opened(path) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _trajectory(line, f"{path.name}, line {number}")
    except OSError as error:
        raise InvalidArguments(f"{path} can not be read: {error.strerror or error}.", field="FILE") from error
    except UnicodeDecodeError as error:
        raise InvalidArguments(f"{path} is no text.", hint="Give a file of JSON lines.", field="FILE") from error


def _opened(path: Path) -> TextIO:
    return (
        cast("TextIO", gzip.open(path, "rt", encoding="utf-8")) if path.suffix == ".gz" else path.open(encoding="utf-8")
    )


def from_openai(rows: Sequence[JsonObject]) -> list[ModelMessage]:
    """Messages with `role`, `content`, `tool_calls` as a model service keeps them."""
    messages: list[ModelMessage] = []
    for row in rows:
        role, text = row.get("role"), _text(row.get("content"))
        if role == "assistant":
            parts: list[ModelResponsePart] = [TextPart(content=text)] if text else []
            parts += [_call(one) for one in _rows(row.get("tool_calls"))]
            messages.append(ModelResponse(parts=parts))
        elif role == "tool":
            result = ToolReturnPart(str(row.get("name") or "tool"), text, str(row.get("tool_call_id") or ""))
            last = messages[-1] if messages else None
            if isinstance(last, ModelRequest) and any(isinstance(part, ToolReturnPart) for part in last.parts):
                messages[-1] = ModelRequest(parts=[*last.parts, result])
            else:
                messages.append(ModelRequest(parts=[result]))
        elif role in ("system", "developer"):
            messages.append(ModelRequest(parts=[SystemPromptPart(content=text)]))
        elif role == "user":
            messages.append(ModelRequest(parts=[UserPromptPart(content=text)]))
        else:
            raise ValueError(f"the role {role!r} is unknown")
    return messages


def _trajectory(line: str, where: str) -> Trajectory:
    hint = 'Each line must be a list of messages, or an object with "messages", in the format of OpenAI.'
    try:
        row = cast("object", json.loads(line))
        fields = cast("JsonObject", row) if isinstance(row, dict) else {"messages": row}
        messages = from_openai(_rows(fields.get("messages")))
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"{where} is no conversation: {error}.", hint=hint, field="FILE") from error
    if not messages:
        raise InvalidArguments(f"{where} has no messages.", hint=hint, field="FILE")
    return Trajectory(str(fields.get("id") or where), messages)


def _call(row: JsonObject) -> ToolCallPart:
    function = row.get("function")
    named = cast("JsonObject", function) if isinstance(function, dict) else {}
    arguments = named.get("arguments")
    args = cast("JsonObject", arguments) if isinstance(arguments, dict) else str(arguments or "{}")
    return ToolCallPart(str(named.get("name") or "tool"), args, str(row.get("id") or ""))


def _rows(value: object) -> list[JsonObject]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in cast("list[object]", value)):
        raise ValueError("messages and calls must be lists of objects")
    return cast("list[JsonObject]", value)


def _text(content: object) -> str:
    if isinstance(content, list):
        parts = (cast("JsonObject", one) for one in cast("list[object]", content) if isinstance(one, dict))
        return "\n".join(str(part.get("text") or "") for part in parts)
    return "" if content is None else str(content)
