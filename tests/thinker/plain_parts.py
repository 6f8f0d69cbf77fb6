"""The plainest part for each role in a thinker: all tools, the whole history, no playbooks."""

from __future__ import annotations

from collections.abc import Collection

from annabelle.core.contract import TokenUsage
from annabelle.core.tools import JsonObject
from annabelle.llm.types import ModelRequest as ModelAsk
from annabelle.skills.playbook import Playbook
from annabelle.thinker.compression.port import CompressionRequest, CompressionResult
from annabelle.thinker.selection.selection import SelectionRequest, ToolSelection, select_required


class AllAllowed:
    """Every tool the hub lists for this agent; with `required_tools`, exactly those and nothing else."""

    async def select(self, ask: SelectionRequest) -> ToolSelection:
        # Sorted, so that the tool part of the prompt is the same prefix whatever order servers started in.
        tools = sorted((*ask.available.tools, *ask.local), key=lambda tool: tool.name)
        if ask.brief.required_tools is None:
            return ToolSelection(tuple(tools))
        return select_required(ask.brief.required_tools, tools)


class WholeHistory:
    """Sends everything as it is."""

    async def think(self, ask: CompressionRequest) -> CompressionResult:
        return CompressionResult(list(ask.messages))

    def learn(self, request: ModelAsk, model: str, usage: TokenUsage) -> None:
        """Nothing is counted here."""

    def finished(self, message_id: str, *, success: bool) -> JsonObject:
        return {}

    def status(self) -> JsonObject:
        return {}


class NoPlaybooks:
    """For a thinker that has none."""

    def matching(self, text: str, tools: Collection[str]) -> tuple[Playbook, ...]:
        return ()
