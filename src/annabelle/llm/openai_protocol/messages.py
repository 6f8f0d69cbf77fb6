"""Conversations in the shape of OpenAI's chat completions."""

from __future__ import annotations

from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.llm.schemas import inlined
from annabelle.llm.types import ToolChoice

WireMessage = JsonObject


def wire_messages(messages: list[ModelMessage], *, one_system: bool) -> list[WireMessage]:
    """The conversation as the server wants it.

    `one_system`: the chat templates of many local models allow a single system message at the start and strictly
    alternating roles after it. So later system texts go to the user's side, and neighbours of one role are joined.
    """
    wire: list[WireMessage] = []
    for message in messages:
        wire += _request(message) if isinstance(message, ModelRequest) else _response(message)
    return _joined(wire) if one_system else wire


def _request(message: ModelRequest) -> list[WireMessage]:
    wire: list[WireMessage] = []
    if message.instructions:
        wire.append({"role": "system", "content": message.instructions})
    for part in message.parts:
        if isinstance(part, SystemPromptPart):
            wire.append({"role": "system", "content": part.content})
        elif isinstance(part, UserPromptPart):
            wire.append({"role": "user", "content": _user_content(part.content)})
        elif isinstance(part, ToolReturnPart):
            text = part.model_response_str()
            wire.append({"role": "tool", "tool_call_id": part.tool_call_id, "content": text})
        elif isinstance(part, RetryFeedbackPart):
            wire.append({"role": "user", "content": part.model_response()})
    return wire


def _user_content(content: object) -> object:
    if isinstance(content, str):
        return content
    pieces: list[JsonObject] = []
    if isinstance(content, list | tuple):
        for item in content:  # pyright: ignore[reportUnknownVariableType]
            piece = _piece(item)  # pyright: ignore[reportUnknownArgumentType]
            if piece is not None:
                pieces.append(piece)
    if all(piece["type"] == "text" for piece in pieces):
        return "\n\n".join(str(piece["text"]) for piece in pieces)  # plain servers know only strings
    return pieces


def _piece(item: UserContent) -> JsonObject | None:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if isinstance(item, TextContent):
        return {"type": "text", "text": item.content}
    if isinstance(item, ImageUrl):
        return {"type": "image_url", "image_url": {"url": item.url}}
    if isinstance(item, BinaryContent) and item.is_image:
        return {"type": "image_url", "image_url": {"url": item.data_uri}}
    return None


def _response(message: ModelResponse) -> list[WireMessage]:
    text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
    calls = [
        {
            "id": part.tool_call_id,
            "type": "function",
            "function": {"name": part.tool_name, "arguments": part.args_as_json_str()},
        }
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]
    if not text and not calls:
        return []
    wire: WireMessage = {"role": "assistant", "content": text or None}
    if calls:
        wire["tool_calls"] = calls
    return [wire]


def _joined(wire: list[WireMessage]) -> list[WireMessage]:
    joined: list[WireMessage] = []
    for item in wire:
        message = item
        role, content = message["role"], message.get("content")
        last = joined[-1] if joined else None
        if role == "system" and last is not None and last["role"] != "system":
            role, content = "user", f"<context>\n{content}\n</context>"
            message = WireMessage(role=role, content=content)
        old = last.get("content") if last is not None else None
        same = last is not None and last["role"] == role and role in ("system", "user")
        if last is not None and same and isinstance(old, str) and isinstance(content, str):
            joined[-1] = {**last, "content": f"{old}\n\n{content}"}
        else:
            joined.append(message)
    return joined


def wire_tools(tools: list[ToolSpec]) -> list[JsonObject]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": inlined(tool.input_schema) or {"type": "object", "properties": {}},
            },
        }
        for tool in tools
    ]


def wire_tool_choice(choice: ToolChoice, tools: list[ToolSpec]) -> tuple[object, list[ToolSpec]]:
    """The `tool_choice` field, and the tools that are left to choose from."""
    if isinstance(choice, str):
        return choice, tools
    named = [tool for tool in tools if tool.name in choice]
    if len(named) == 1:
        return {"type": "function", "function": {"name": named[0].name}}, named
    # No server but one knows a list of names: offering only these and requiring one says the same.
    return "required", named
