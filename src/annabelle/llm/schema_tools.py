"""Gives tools to models without function calling: two constrained answers instead of one free one (LLM-08).

The tools stand as a compact list in the system prompt, a stable prefix the server keeps in its cache. First the model
names a tool or `none`, in an answer whose JSON schema allows nothing else. Then it is asked for the arguments under the
tool's own schema, or, after `none`, for its answer, which streams as usual. What can not be read is asked for once
more, and then the model just talks: a weak model costs a turn its tools, never its answer. So one call is at most five
questions to the server.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import cast

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.usage import RequestUsage

from annabelle.core.errors import ProviderTrouble
from annabelle.core.ids import new_id
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.llm.as_text import with_system, without_tool_parts
from annabelle.llm.backend import Answer, AnswerSchema, Ask, Backend, BackendEvent, Begun
from annabelle.llm.booking import Effort
from annabelle.llm.schemas import inlined, signature

CHOOSE, ARGUMENTS, NONE = "choose_tool", "tool_arguments", "none"
_TRIES = 2
_CHOICE_TOKENS = 60
_ARGUMENT_TOKENS = 1000
_LONGEST_DESCRIPTION = 160
SCHEMA_EFFORT = Effort(2 * _TRIES + 1, _TRIES * (_CHOICE_TOKENS + _ARGUMENT_TOKENS))
"""What one call is at most: every question asked twice, and then the answer."""


@dataclass(slots=True)
class _Spent:
    """What the questions before the answer used. `cost_usd` is None once one of them did not say what it cost."""

    usage: RequestUsage = field(default_factory=RequestUsage)
    cost_usd: float | None = 0.0
    begun: bool = False

    def add(self, answer: Answer) -> None:
        self.usage.incr(answer.response.usage)
        self.cost_usd = self.with_cost(answer.cost_usd)

    def with_cost(self, more: float | None) -> float | None:
        return None if self.cost_usd is None or more is None else self.cost_usd + more


class SchemaTools:
    """Wraps a backend whose model has no function calling; what comes out are normal tool calls."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def close(self) -> None:
        await self._backend.close()

    async def stream(self, ask: Ask) -> AsyncGenerator[BackendEvent]:
        spent = _Spent()
        try:
            async with aclosing(self._answered(ask, spent)) as events:
                async for event in events:
                    yield event
        except ProviderTrouble:
            if spent.begun:  # a question that was refused takes nothing back of those that were answered
                yield Begun()
            raise

    async def _answered(self, ask: Ask, spent: _Spent) -> AsyncGenerator[BackendEvent]:
        base = without_tool_parts(ask.messages)
        tools = ask.tools if isinstance(ask.tool_choice, str) else [t for t in ask.tools if t.name in ask.tool_choice]
        if tools:
            base = with_system(base, tool_list(tools))
        if tools and ask.tool_choice != "none":
            talk = replace(ask, messages=base, tools=[], tool_choice="auto")
            tool = await self._choose(talk, tools, may_answer=ask.tool_choice == "auto", spent=spent)
            arguments = await self._arguments(talk, tool, spent) if tool is not None else None
            if tool is not None and arguments is not None:
                yield Answer(_call_response(ask.model, tool.name, arguments, spent.usage), spent.cost_usd)
                return
        plain = replace(ask, messages=base, tools=[], tool_choice="auto")
        async with aclosing(self._backend.stream(plain)) as events:
            async for event in events:
                if isinstance(event, Answer):
                    usage = event.response.usage + spent.usage
                    yield Answer(replace(event.response, usage=usage), spent.with_cost(event.cost_usd))
                else:
                    yield event

    async def _choose(self, ask: Ask, tools: list[ToolSpec], *, may_answer: bool, spent: _Spent) -> ToolSpec | None:
        """The tool the model wants next, or None when it wants to answer."""
        if len(tools) == 1 and not may_answer:
            return tools[0]
        names = [tool.name for tool in tools] + ([NONE] if may_answer else [])
        schema = _object({"tool": {"type": "string", "enum": names}}, ["tool"])
        instead = f' or "{NONE}" to answer without a tool' if may_answer else ""
        question = f"Which tool is needed next? Answer with the tool's name{instead}, as JSON."
        for _ in range(_TRIES):
            value = await self._constrained(ask, question, AnswerSchema(CHOOSE, schema), _CHOICE_TOKENS, spent)
            name = value.get("tool") if value is not None else None
            if name == NONE and may_answer:
                return None
            chosen = next((tool for tool in tools if tool.name == name), None)
            if chosen is not None:
                return chosen
        return None

    async def _arguments(self, ask: Ask, tool: ToolSpec, spent: _Spent) -> JsonObject | None:
        """The arguments for the chosen tool, or None when the model can not give them."""
        schema = inlined(tool.input_schema)
        if not schema.get("properties"):
            return {}
        question = f"Give the arguments for {tool.name} as JSON, from the conversation above. {tool.description}"
        required = cast("list[str]", schema.get("required") or [])
        for _ in range(_TRIES):
            value = await self._constrained(ask, question, AnswerSchema(ARGUMENTS, schema), _ARGUMENT_TOKENS, spent)
            if value is not None and all(name in value for name in required):
                return value
        return None

    async def _constrained(
        self, ask: Ask, question: str, schema: AnswerSchema, tokens: int, spent: _Spent
    ) -> JsonObject | None:
        messages: list[ModelMessage] = [*ask.messages, ModelRequest(parts=[UserPromptPart(question)])]
        narrow = replace(ask, messages=messages, answer_schema=schema, temperature=0.0, max_tokens=tokens)
        async with aclosing(self._backend.stream(narrow)) as events:
            async for event in events:
                if isinstance(event, Begun):
                    spent.begun = True
                elif isinstance(event, Answer):
                    spent.add(event)
                    parts = event.response.parts
                    return first_object("".join(part.content for part in parts if isinstance(part, TextPart)))
        return None


def tool_list(tools: list[ToolSpec]) -> str:
    """The tools in a few tokens each."""
    lines = [f"- {tool.name}({signature(inlined(tool.input_schema))}): {_short(tool.description)}" for tool in tools]
    return "You can use these tools:\n" + "\n".join(lines)


def _short(description: str) -> str:
    line = description.strip().split("\n", 1)[0]
    return line if len(line) <= _LONGEST_DESCRIPTION else line[: _LONGEST_DESCRIPTION - 1] + "…"


def first_object(text: str) -> JsonObject | None:
    """The first JSON object in a text; servers that can not constrain wrap it in prose or a code fence."""
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


def _object(properties: JsonObject, required: list[str]) -> JsonObject:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _call_response(model: str, name: str, arguments: JsonObject, spent: RequestUsage) -> ModelResponse:
    call = ToolCallPart(name, json.dumps(arguments, ensure_ascii=False), tool_call_id=new_id("call"))
    return ModelResponse(parts=[call], usage=spent, model_name=model, finish_reason="tool_call")
