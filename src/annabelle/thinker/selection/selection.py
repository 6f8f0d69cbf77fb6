"""The tools of one turn: what a selection is made from, its result, and tools the thinker serves itself (SEL-01)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Protocol, cast

from annabelle.core.contract import ToolList, TurnBrief
from annabelle.core.tools import JsonObject, ToolResult, ToolSpec, first_sentence

_TYPE_KEYS: Final = frozenset({"type", "enum", "items", "properties", "required"})
_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+")


@dataclass(frozen=True, slots=True)
class SelectionRequest:
    """What a selection is made for. `sticky` are the tools of the last turns, the newest first, and `previous` the last
    one of the turn before; `local` are tools the thinker serves itself, as for its archive."""

    brief: TurnBrief
    text: str
    available: ToolList
    sticky: tuple[str, ...] = ()
    previous: str = ""
    playbook_tools: tuple[str, ...] = ()
    local: tuple[ToolSpec, ...] = ()


SelectionReason = Literal["core", "in use", "learned", "fits", "may fit", "named group", "required"]
"""Why a tool is offered. `in use`: a playbook, the message or the last turns name it."""


@dataclass(frozen=True, slots=True)
class SelectionReport:
    """How a selection came about, for the trace (SEL-09)."""

    method: str
    selected: int
    total: int
    top_score: float = 0.0
    cutoff: float = 0.0
    top: tuple[tuple[str, float], ...] = ()
    offered: Mapping[str, SelectionReason] = field(default_factory=dict[str, SelectionReason])

    def to_json(self) -> JsonObject:
        return {
            "method": self.method,
            "selected": self.selected,
            "total": self.total,
            "top_score": round(self.top_score, 4),
            "cutoff": round(self.cutoff, 4),
            "top": [[name, round(score, 4)] for name, score in self.top],
            "offered": dict(self.offered),
        }


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """The tools that go to the model, in a stable order, and the required ones that do not exist right now."""

    tools: tuple[ToolSpec, ...]
    missing: tuple[str, ...] = ()
    report: SelectionReport | None = None
    temperature: float | None = None
    """Lower than the agent's own where one tool clearly fits (SEL-08)."""
    small_talk: bool = False
    """Nothing is asked for that a tool could do, so none is ever demanded."""
    limit: int = 25
    others: tuple[ToolSpec, ...] = field(default=(), repr=False)
    """What was not selected: the model may look for it with `search_tools`."""
    wanted: tuple[str, ...] = field(default=(), repr=False)
    """The names of the selected tools, most wanted first: where there is no room, the last give way."""
    in_brief: frozenset[str] = field(default=frozenset(), repr=False)
    """Tools that are only at hand: the message does not ask for them, so the model sees them in brief."""

    def shown(self) -> list[ToolSpec]:
        """The tools as the model sees them."""
        return [outline_tool(tool) if tool.name in self.in_brief else _without_closing(tool) for tool in self.tools]

    def spec(self, name: str) -> ToolSpec | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    def names(self) -> list[str]:
        return [tool.name for tool in self.tools]

    def name_in_words(self, text: str, asked: str) -> str:
        """What a person reads calls tools by what they do, unless the person used their names (FST-01)."""
        if "_" not in text:
            return text
        tools = (*self.tools, *self.others)
        words = {tool.name: tool.original_name.replace("_", " ") for tool in tools if tool.name not in asked}
        return _IDENTIFIER.sub(lambda found: words.get(found[0], found[0]), text)

    def with_found(self, names: Iterable[str]) -> ToolSelection:
        """The same with tools the model asks for. The limit holds: those least wanted, and not asked for, give way."""
        asked = dict.fromkeys(names)
        in_brief = self.in_brief - asked.keys()
        by_name = {tool.name: tool for tool in self.others if tool.name in asked}
        found = tuple(by_name[name] for name in asked if name in by_name)[: max(1, self.limit // 2)]
        if not found:
            return self if in_brief == self.in_brief else replace(self, in_brief=in_brief)
        crowded = max(0, len(self.tools) + len(found) - self.limit)
        idle = [name for name in self.wanted if name not in asked]
        leaving = set(idle[max(0, len(idle) - crowded) :]) if crowded else set[str]()
        # Behind the others: what the model was given before stays the same prefix, where there is room.
        stay = tuple(tool for tool in self.tools if tool.name not in leaving)
        found = found[: max(0, self.limit - len(stay))]
        left = tuple(tool for tool in (*self.others, *self.tools) if tool not in found and tool not in stay)
        wanted = (*(name for name in self.wanted if name not in leaving), *(tool.name for tool in found))
        return replace(self, tools=(*stay, *found), others=left, wanted=wanted, in_brief=in_brief)


def outline_tool(tool: ToolSpec) -> ToolSpec:
    """What it does in a sentence, what it must be given, and the names of what it may be given besides."""
    schema = tool.input_schema
    properties = cast("dict[str, JsonObject]", schema.get("properties") or {})
    required = cast("list[str]", schema.get("required") or [])
    optional = [name for name in properties if name not in required]
    text = f"{first_sentence(tool.description)}."
    return tool.model_copy(
        update={
            "description": f"{text} Also takes {', '.join(optional)}." if optional else text,
            "input_schema": {
                **{key: schema[key] for key in ("$defs", "definitions") if key in schema},
                "type": "object",
                "properties": {name: _outline_parameter(properties[name]) for name in required if name in properties},
                **({"required": required} if required else {}),
            },
        }
    )


def _without_closing(tool: ToolSpec) -> ToolSpec:
    """That there are no more parameters than those listed goes without saying; the hub checks it."""
    kept = {key: value for key, value in tool.input_schema.items() if key != "additionalProperties" or value}
    return tool.model_copy(update={"input_schema": kept})


def _outline_parameter(schema: JsonObject) -> JsonObject:
    kept = {key: value for key, value in schema.items() if key in _TYPE_KEYS}
    return kept if "type" in kept else schema


class ToolSelector(Protocol):
    """Anything that narrows the hub's list for one turn. It can only narrow: the hub checks every call again."""

    async def select(self, ask: SelectionRequest) -> ToolSelection: ...


def select_required(required: Iterable[str], tools: Iterable[ToolSpec]) -> ToolSelection:
    """Exactly the tools that are required, and the names of those that are not there (SEL-01)."""
    wanted = set(required)
    chosen = tuple(tool for tool in tools if tool.name in wanted)
    missing = tuple(sorted(wanted - {tool.name for tool in chosen}))
    offered: dict[str, SelectionReason] = {tool.name: "required" for tool in chosen}
    report = SelectionReport("required", len(chosen), len(chosen) + len(missing), offered=offered)
    return ToolSelection(chosen, missing, report)


LOCAL_SERVER: Final = "thinker"
SEARCH_TOOLS: Final = "search_tools"


class LocalTool(Protocol):
    """One tool of one turn."""

    @property
    def spec(self) -> ToolSpec: ...

    async def call(self, arguments: JsonObject) -> ToolResult: ...
