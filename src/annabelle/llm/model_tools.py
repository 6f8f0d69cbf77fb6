"""Tools for models: inlined JSON schemas, and constrained answers for models without function calling (LLM-08).

With constrained answers the model first names a tool or `none`, then gives arguments under the tool's schema. What
cannot be parsed is asked for once more, so one call makes at most five requests.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from annabelle.core.errors import ProviderTrouble
from annabelle.core.ids import new_id
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.llm.backend import AnswerSchema, AnswerStarted, Backend, BackendAnswer, BackendEvent, ModelQuestion
from annabelle.llm.metering import CallEffort

_DEEPEST_REFERENCE = 12
_MOST_REFERENCES = 1_000


def inline_references(schema: JsonObject) -> JsonObject:
    """Returns the schema without `$ref`, which some providers and all small grammar engines reject."""
    definitions = {
        f"#/{place}/{name}": value
        for place in ("$defs", "definitions")
        for name, value in cast("JsonObject", schema.get(place) or {}).items()
    }
    return cast("JsonObject", _ReferenceInliner(definitions).inline(schema, 0)) if definitions else schema


class _ReferenceInliner:
    """Replaces references, a thousand at most: a few that refer to each other could expand to millions."""

    def __init__(self, definitions: JsonObject) -> None:
        self._definitions = definitions
        self._left = _MOST_REFERENCES

    def inline(self, value: object, depth: int) -> object:
        if isinstance(value, dict):
            fields = cast("JsonObject", value)
            reference = fields.get("$ref")
            if isinstance(reference, str):
                beside = {name: item for name, item in fields.items() if name != "$ref"}
                return {**cast("JsonObject", self.inline(self._target(reference, depth), depth + 1)), **beside}
            named = ((name, item) for name, item in fields.items() if name not in ("$defs", "definitions"))
            return {name: self.inline(item, depth) for name, item in named}
        if isinstance(value, list):
            return [self.inline(item, depth) for item in cast("list[object]", value)]
        return value

    def _target(self, reference: str, depth: int) -> object:
        """A recursive schema has no finite form: beyond the limits anything is allowed."""
        self._left -= 1
        return (self._definitions.get(reference) if depth < _DEEPEST_REFERENCE and self._left >= 0 else None) or {}


def format_signature(schema: JsonObject) -> str:
    """Formats a schema's top level in one short line: `path: string, count?: integer`."""
    required = cast("list[str]", schema.get("required") or [])
    parts: list[str] = []
    for name, definition in cast("dict[str, JsonObject]", schema.get("properties") or {}).items():
        kinds = cast("list[object]", definition.get("enum") or [])
        kind = "|".join(str(item) for item in kinds[:8]) if kinds else str(definition.get("type", "any"))
        parts.append(f"{name}{'' if name in required else '?'}: {kind}")
    return ", ".join(parts)


def without_tool_parts(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Replaces tool calls and results by text; leaves other messages unchanged."""
    return [_request_as_text(item) if isinstance(item, ModelRequest) else _response_as_text(item) for item in messages]


def _request_as_text(message: ModelRequest) -> ModelRequest:
    if not any(isinstance(part, ToolReturnPart) for part in message.parts):
        return message
    parts: list[ModelRequestPart] = [
        UserPromptPart(f"Result of {part.tool_name}:\n{part.model_response_str()}")
        if isinstance(part, ToolReturnPart)
        else part
        for part in message.parts
    ]
    return ModelRequest(parts=parts, instructions=message.instructions)


def _response_as_text(message: ModelResponse) -> ModelResponse:
    if not any(isinstance(part, ToolCallPart) for part in message.parts):
        return message
    parts: list[ModelResponsePart] = [
        TextPart(format_call(part.tool_name, part.args_as_json_str())) if isinstance(part, ToolCallPart) else part
        for part in message.parts
    ]
    return ModelResponse(parts=parts)


def format_call(name: str, arguments: str) -> str:
    return f'{{"tool": {json.dumps(name)}, "arguments": {arguments}}}'


def add_system_prompt(messages: list[ModelMessage], text: str) -> list[ModelMessage]:
    """Adds a text after the leading system prompts, as part of the stable prefix."""
    if not messages or not isinstance(messages[0], ModelRequest):
        return [ModelRequest(parts=[SystemPromptPart(text)]), *messages]
    first = messages[0]
    parts = list(first.parts)
    place = next((n for n, part in enumerate(parts) if not isinstance(part, SystemPromptPart)), len(parts))
    parts.insert(place, SystemPromptPart(text))
    return [ModelRequest(parts=parts, instructions=first.instructions), *messages[1:]]


CHOOSE, ARGUMENTS, NONE = "choose_tool", "tool_arguments", "none"
_TRIES = 2
_CHOICE_TOKENS = 60
_ARGUMENT_TOKENS = 1000
_LONGEST_DESCRIPTION = 160
SCHEMA_EFFORT = CallEffort(2 * _TRIES + 1, _TRIES * (_CHOICE_TOKENS + _ARGUMENT_TOKENS))
"""The most one call can be: every question asked twice, and then the answer."""


@dataclass(slots=True)
class _QuestionUsage:
    """Usage of the questions before the answer. `cost_usd` is None once one of them did not state its cost."""

    usage: RequestUsage = field(default_factory=RequestUsage)
    cost_usd: float | None = 0.0
    begun: bool = False

    def add(self, answer: BackendAnswer) -> None:
        self.usage.incr(answer.response.usage)
        self.cost_usd = self.with_cost(answer.cost_usd)

    def with_cost(self, more: float | None) -> float | None:
        return None if self.cost_usd is None or more is None else self.cost_usd + more


class SchemaToolBackend:
    """Wraps a backend whose model has no function calling; yields normal tool calls."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def close(self) -> None:
        await self._backend.close()

    async def stream(self, ask: ModelQuestion) -> AsyncGenerator[BackendEvent]:
        spent = _QuestionUsage()
        try:
            async with aclosing(self._stream_answer(ask, spent)) as events:
                async for event in events:
                    yield event
        except ProviderTrouble:
            if spent.begun:  # earlier questions were answered and may be charged
                yield AnswerStarted()
            raise

    async def _stream_answer(self, ask: ModelQuestion, spent: _QuestionUsage) -> AsyncGenerator[BackendEvent]:
        base = without_tool_parts(ask.messages)
        tools = ask.tools if isinstance(ask.tool_choice, str) else [t for t in ask.tools if t.name in ask.tool_choice]
        if tools:
            base = add_system_prompt(base, format_tool_list(tools))
        if tools and ask.tool_choice != "none":
            talk = replace(ask, messages=base, tools=[], tool_choice="auto")
            tool = await self._choose_tool(talk, tools, may_answer=ask.tool_choice == "auto", spent=spent)
            arguments = await self._ask_arguments(talk, tool, spent) if tool is not None else None
            if tool is not None and arguments is not None:
                yield BackendAnswer(_call_response(ask.model, tool.name, arguments, spent.usage), spent.cost_usd)
                return
        plain = replace(ask, messages=base, tools=[], tool_choice="auto")
        async with aclosing(self._backend.stream(plain)) as events:
            async for event in events:
                if isinstance(event, BackendAnswer):
                    usage = event.response.usage + spent.usage
                    yield BackendAnswer(replace(event.response, usage=usage), spent.with_cost(event.cost_usd))
                else:
                    yield event

    async def _choose_tool(
        self, ask: ModelQuestion, tools: list[ToolSpec], *, may_answer: bool, spent: _QuestionUsage
    ) -> ToolSpec | None:
        """Returns the tool the model wants next, or None if it wants to answer."""
        if len(tools) == 1 and not may_answer:
            return tools[0]
        names = [tool.name for tool in tools] + ([NONE] if may_answer else [])
        schema = _object_schema({"tool": {"type": "string", "enum": names}}, ["tool"])
        instead = f' or "{NONE}" to answer without a tool' if may_answer else ""
        question = f"Which tool is needed next? Answer with the tool's name{instead}, as JSON."
        for _ in range(_TRIES):
            value = await self._ask_constrained(ask, question, AnswerSchema(CHOOSE, schema), _CHOICE_TOKENS, spent)
            name = value.get("tool") if value is not None else None
            if name == NONE and may_answer:
                return None
            chosen = next((tool for tool in tools if tool.name == name), None)
            if chosen is not None:
                return chosen
        return None

    async def _ask_arguments(self, ask: ModelQuestion, tool: ToolSpec, spent: _QuestionUsage) -> JsonObject | None:
        """Returns the arguments for the tool, or None if the model cannot give them."""
        schema = inline_references(tool.input_schema)
        if not schema.get("properties"):
            return {}
        question = f"Give the arguments for {tool.name} as JSON, from the conversation above. {tool.description}"
        required = cast("list[str]", schema.get("required") or [])
        for _ in range(_TRIES):
            value = await self._ask_constrained(ask, question, AnswerSchema(ARGUMENTS, schema), _ARGUMENT_TOKENS, spent)
            if value is not None and all(name in value for name in required):
                return value
        return None

    async def _ask_constrained(
        self, ask: ModelQuestion, question: str, schema: AnswerSchema, tokens: int, spent: _QuestionUsage
    ) -> JsonObject | None:
        messages: list[ModelMessage] = [*ask.messages, ModelRequest(parts=[UserPromptPart(question)])]
        narrow = replace(ask, messages=messages, answer_schema=schema, temperature=0.0, max_tokens=tokens)
        async with aclosing(self._backend.stream(narrow)) as events:
            async for event in events:
                if isinstance(event, AnswerStarted):
                    spent.begun = True
                elif isinstance(event, BackendAnswer):
                    spent.add(event)
                    parts = event.response.parts
                    return parse_first_object("".join(part.content for part in parts if isinstance(part, TextPart)))
        return None


def format_tool_list(tools: list[ToolSpec]) -> str:
    lines = [
        f"- {tool.name}({format_signature(inline_references(tool.input_schema))}): "
        f"{_shorten_description(tool.description)}"
        for tool in tools
    ]
    return "You can use these tools:\n" + "\n".join(lines)


def _shorten_description(description: str) -> str:
    line = description.strip().split("\n", 1)[0]
    return line if len(line) <= _LONGEST_DESCRIPTION else line[: _LONGEST_DESCRIPTION - 1] + "…"


def parse_first_object(text: str) -> JsonObject | None:
    """Parses the first JSON object in a text; servers without constraints wrap it in prose or a code fence."""
    decoder = json.JSONDecoder()
    position = text.find("{")
    while position >= 0:
        try:
            value = cast("object", decoder.raw_decode(text, position)[0])
        except ValueError:
            value = None
        if isinstance(value, dict):
            return cast("JsonObject", value)
        position = text.find("{", position + 1)
    return None


def _object_schema(properties: JsonObject, required: list[str]) -> JsonObject:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _call_response(model: str, name: str, arguments: JsonObject, spent: RequestUsage) -> ModelResponse:
    call = ToolCallPart(name, json.dumps(arguments, ensure_ascii=False), tool_call_id=new_id("call"))
    return ModelResponse(parts=[call], usage=spent, model_name=model, finish_reason="tool_call")


class ToollessBackend:
    """Wraps a backend: drops tools, and shows tool calls in the history as text."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def stream(self, ask: ModelQuestion) -> AsyncGenerator[BackendEvent]:
        return self._backend.stream(
            replace(ask, messages=without_tool_parts(ask.messages), tools=[], tool_choice="none")
        )

    async def close(self) -> None:
        await self._backend.close()
