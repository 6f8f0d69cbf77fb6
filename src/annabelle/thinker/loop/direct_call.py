"""A message that matches a template is done at once: its call is made and its result is the answer (INT-01)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart

from annabelle.core.contract import TurnBrief
from annabelle.core.tools import ToolSpec
from annabelle.language.templates import OwnTemplates, TemplateMatch, packaged_templates
from annabelle.llm.types import result_words

_CALL_ID: Final = "call_template_"


@dataclass(frozen=True, slots=True)
class DirectCall:
    """The call of one message. No model is asked while it goes well."""

    match: TemplateMatch
    message_id: str

    def respond(self, messages: Sequence[ModelMessage]) -> ModelResponse | None:
        """The response to a turn's messages so far: the call, then its result. None if a model has to go on."""
        if not messages:
            call = ToolCallPart(self.match.tool, json.dumps(self.match.arguments), f"{_CALL_ID}{self.message_id}")
            return ModelResponse(parts=[call])
        results = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        if [(part.tool_call_id[: len(_CALL_ID)], part.outcome) for part in results] != [(_CALL_ID, "success")]:
            return None
        return ModelResponse(parts=[TextPart(result_words(results[0]))])


class DirectCalls:
    """Finds the call that a message asks for word for word."""

    def __init__(self, own_file: Path) -> None:
        self._own = OwnTemplates(own_file)

    def find(self, text: str, brief: TurnBrief, tools: Iterable[ToolSpec]) -> DirectCall | None:
        """Only in a conversation, and only for a tool that reads or writes inside."""
        if not brief.conversational or brief.required_tools is not None or brief.resume is not None:
            return None
        tools = list(tools)
        match = self._own.load(tools).match(text) or packaged_templates().match(text)
        tool = next((tool for tool in tools if match is not None and tool.name == match.tool), None)
        # The hub checks the arguments; if it refuses them, the model goes on.
        return DirectCall(match, brief.message_id) if match and tool and _stays_inside(tool) else None

    def named_tools(self, text: str) -> list[str]:
        """Tools that the person's own phrases ask for in about these words; they are offered to the model."""
        return self._own.load().alike(text)


def _stays_inside(tool: ToolSpec) -> bool:
    can = tool.annotations
    return can.read_only or not (can.destructive or can.open_world)
