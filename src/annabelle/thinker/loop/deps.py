"""What the loop needs: the parts of a thinker, made once per process, and the scope of one turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from annabelle.core.contract import AgentProfile, ToolCall, ToolList, TurnBrief, TurnLimits
from annabelle.core.settings import Settings
from annabelle.core.tools import ToolResult
from annabelle.core.trace import TraceFile
from annabelle.llm.types import ModelChoice, ModelEvent, ModelRequest, Purpose
from annabelle.skills.playbook import Playbooks
from annabelle.thinker.compression.port import Compressor, WorkspaceView
from annabelle.thinker.compression.workspace import Workspaces
from annabelle.thinker.costs import CostMeter
from annabelle.thinker.engine import WorkflowEngine
from annabelle.thinker.live_turn import LiveTurn
from annabelle.thinker.prompt.memory_recall import MemoryRecall
from annabelle.thinker.prompt.prompt import PromptBuilder, TurnPrompt
from annabelle.thinker.selection.selection import LocalTool, ToolSelection, ToolSelector
from annabelle.thinker.session.session_store import Sessions


class ThinkerModel(Protocol):
    """What the thinker needs of the model service."""

    async def choose(self, purpose: Purpose = "chat") -> ModelChoice: ...

    def request(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]: ...


class HubTools(Protocol):
    """What the loop needs of the hub."""

    def expect_tools(self, version: str | None) -> None: ...

    async def tools(self) -> ToolList: ...

    async def call(self, call: ToolCall, user_id: str) -> ToolResult: ...


@dataclass(frozen=True, slots=True)
class ThinkerDeps:
    """The parts of one thinker."""

    profile: AgentProfile
    settings: Settings
    generation: int
    engine: WorkflowEngine
    model: ThinkerModel
    hub: HubTools
    sessions: Sessions
    prompt_builder: PromptBuilder
    memory_recall: MemoryRecall
    selector: ToolSelector
    playbooks: Playbooks
    compressor: Compressor
    trace: TraceFile
    costs: CostMeter
    workspaces: Workspaces | None = None


@dataclass(frozen=True, slots=True)
class TurnScope:
    brief: TurnBrief
    limits: TurnLimits
    live: LiveTurn
    prompt: TurnPrompt
    selection: ToolSelection
    local_tools: Mapping[str, LocalTool] = field(default_factory=dict[str, LocalTool])
    workspace: WorkspaceView | None = None
