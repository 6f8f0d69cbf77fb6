"""What one turn is: its brief, its limits, and its live side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from annabelle.core.contract import TurnBrief, TurnLimits
from annabelle.thinker.compress.port import Workspace
from annabelle.thinker.context.prompt import Prompt
from annabelle.thinker.live import LiveTurn
from annabelle.thinker.loop.local_tools import LocalTool
from annabelle.thinker.select.selector import Selection


@dataclass(frozen=True, slots=True)
class TurnScope:
    brief: TurnBrief
    limits: TurnLimits
    live: LiveTurn
    prompt: Prompt
    selection: Selection
    local_tools: Mapping[str, LocalTool] = field(default_factory=dict[str, LocalTool])
    workspace: Workspace | None = None
