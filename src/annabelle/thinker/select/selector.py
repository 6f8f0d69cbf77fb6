"""Chooses the tools of one turn: all the agent may use, or exactly those the brief requires (SEL-01)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from annabelle.core.contract import ToolList, TurnBrief
from annabelle.core.tools import ToolSpec


@dataclass(frozen=True, slots=True)
class Selection:
    """The tools that go to the model, in a stable order, and the required ones that do not exist right now."""

    tools: tuple[ToolSpec, ...]
    missing: tuple[str, ...] = ()

    def spec(self, name: str) -> ToolSpec | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    def names(self) -> list[str]:
        return [tool.name for tool in self.tools]


class Selector(Protocol):
    """Anything that narrows the hub's list for one turn. It can only narrow: the hub checks every call again."""

    def select(self, brief: TurnBrief, available: ToolList) -> Selection: ...


class AllAllowed:
    """Every tool the hub lists for this agent; with `required_tools`, exactly those and nothing else."""

    def select(self, brief: TurnBrief, available: ToolList) -> Selection:
        # Sorted, so that the tool part of the prompt is the same prefix whatever order servers started in.
        tools = sorted(available.tools, key=lambda tool: tool.name)
        if brief.required_tools is None:
            return Selection(tuple(tools))
        wanted = set(brief.required_tools)
        chosen = tuple(tool for tool in tools if tool.name in wanted)
        return Selection(chosen, tuple(sorted(wanted - {tool.name for tool in chosen})))
