"""Everything the loop works with, made once per process."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from annabelle.core.contract import AgentProfile, ToolCall, ToolList
from annabelle.core.settings import Settings
from annabelle.core.tools import ToolResult
from annabelle.core.trace import TraceFile
from annabelle.llm.types import ModelChoice, ModelEvent, ModelRequest, Purpose
from annabelle.skills.playbook import Playbooks
from annabelle.thinker.compress.port import Thinking
from annabelle.thinker.compress.workspaces import Workspaces
from annabelle.thinker.context.prompt import ContextBuilder
from annabelle.thinker.context.recollection import Recollection
from annabelle.thinker.costs import CostMeter
from annabelle.thinker.engine import Engine
from annabelle.thinker.select.selector import Selector
from annabelle.thinker.session.port import Sessions


class Model(Protocol):
    """What is asked of the model service."""

    async def choose(self, purpose: Purpose = "chat") -> ModelChoice: ...

    def request(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]: ...


class Tools(Protocol):
    """What the loop asks of the hub."""

    def expect_tools(self, version: str | None) -> None: ...

    async def tools(self) -> ToolList: ...

    async def call(self, call: ToolCall, user_id: str) -> ToolResult: ...


@dataclass(frozen=True, slots=True)
class Workbench:
    """The parts of one thinker."""

    profile: AgentProfile
    settings: Settings
    generation: int
    engine: Engine
    model: Model
    hub: Tools
    sessions: Sessions
    context: ContextBuilder
    recollection: Recollection
    selector: Selector
    playbooks: Playbooks
    thinking: Thinking
    trace: TraceFile
    costs: CostMeter
    workspaces: Workspaces | None = None
