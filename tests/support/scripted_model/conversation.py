"""What a script needs to know of a request, whichever protocol it came in."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]


@dataclass(frozen=True)
class Turn:
    """One thing in the conversation: a user text, a tool result, an assistant text or an assistant's calls."""

    kind: Literal["system", "user", "result", "assistant", "calls"]
    text: str


@dataclass(frozen=True)
class Conversation:
    """The request as a list of turns, with the facts rules match on."""

    turns: list[Turn]
    model: str
    stream: bool
    tools: list[str] = field(default_factory=list)
    tool_choice: str = "auto"
    schema_name: str = ""
    schema: Json = field(default_factory=dict)
    input_tokens: int = 0

    @property
    def user_text(self) -> str:
        return next((turn.text for turn in reversed(self.turns) if turn.kind == "user"), "")

    @property
    def results(self) -> list[str]:
        """The tool results since the last user text."""
        found: list[str] = []
        for turn in reversed(self.turns):
            if turn.kind == "user":
                break
            if turn.kind == "result":
                found.insert(0, turn.text)
        return found


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict) and "text" in part)
    return ""


def _choice(value: object) -> str:
    if isinstance(value, dict):
        name = value.get("name") or (value.get("function") or {}).get("name")
        return str(name or value.get("type") or "auto")
    return str(value or "auto")


def from_openai(body: Json) -> Conversation:
    turns: list[Turn] = []
    for message in body.get("messages", []):
        role, text = message.get("role"), _text(message.get("content"))
        if role == "assistant":
            if message.get("tool_calls"):
                turns.append(Turn("calls", json.dumps(message["tool_calls"])))
            elif text:
                turns.append(Turn("assistant", text))
        elif role == "tool":
            turns.append(Turn("result", text))
        elif role in ("system", "developer"):
            turns.append(Turn("system", text))
        else:
            turns.append(Turn("user", text))
    schema = (body.get("response_format") or {}).get("json_schema") or {}
    return Conversation(
        turns=turns,
        model=str(body.get("model", "")),
        stream=bool(body.get("stream")),
        tools=[tool["function"]["name"] for tool in body.get("tools") or []],
        tool_choice=_choice(body.get("tool_choice")),
        schema_name=str(schema.get("name", "")),
        schema=schema.get("schema") or {},
        input_tokens=sum(len(turn.text) for turn in turns) // 4 + 1,
    )


def from_anthropic(body: Json) -> Conversation:
    turns: list[Turn] = []
    if body.get("system"):
        turns.append(Turn("system", _text(body["system"])))
    for message in body.get("messages", []):
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        for block in blocks:
            if block["type"] == "tool_result":
                turns.append(Turn("result", _text(block.get("content"))))
            elif block["type"] == "tool_use":
                turns.append(Turn("calls", json.dumps(block)))
            elif block["type"] == "text":
                turns.append(Turn("user" if message["role"] == "user" else "assistant", block["text"]))
    return Conversation(
        turns=turns,
        model=str(body.get("model", "")),
        stream=bool(body.get("stream")),
        tools=[tool["name"] for tool in body.get("tools") or []],
        tool_choice=_choice(body.get("tool_choice")),
        input_tokens=sum(len(turn.text) for turn in turns) // 4 + 1,
    )
