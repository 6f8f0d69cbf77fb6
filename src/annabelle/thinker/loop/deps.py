"""What the loop needs: the parts of a thinker, made once per process, and the scope of one turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from annabelle.core.contract import AgentProfile, TurnBrief, TurnLimits
from annabelle.core.settings import Settings
from annabelle.core.trace import ChatNotices, TraceFile
from annabelle.skills.playbook import Playbooks
from annabelle.thinker.compression.port import Compressor
from annabelle.thinker.compression.workspace import ThreadWorkspace, Workspaces
from annabelle.thinker.costs import CostMeter
from annabelle.thinker.engine import WorkflowEngine
from annabelle.thinker.hub_client import HubTools
from annabelle.thinker.live_turn import LiveTurn
from annabelle.thinker.loop.direct_call import DirectCall, DirectCalls
from annabelle.thinker.prompt.memory_recall import MemoryRecall
from annabelle.thinker.prompt.prompt import LayeredPromptBuilder, TurnPrompt
from annabelle.thinker.prompt.skill_offer import SkillOffers
from annabelle.thinker.prompt.tool_hints import ToolPatterns
from annabelle.thinker.selection.selection import LocalTool, ToolSelection, ToolSelector
from annabelle.thinker.session.conversations import Conversations
from annabelle.thinker.summary_model import ThinkerModel


@dataclass(frozen=True, slots=True)
class ThinkerDeps:
    """The parts of one thinker."""

    profile: AgentProfile
    settings: Settings
    generation: int
    engine: WorkflowEngine
    model: ThinkerModel
    hub: HubTools
    sessions: Conversations
    prompt_builder: LayeredPromptBuilder
    memory_recall: MemoryRecall
    selector: ToolSelector
    playbooks: Playbooks
    compressor: Compressor
    trace: TraceFile
    costs: CostMeter
    workspaces: Workspaces | None = None
    direct_calls: DirectCalls | None = None
    skills: SkillOffers | None = None
    tool_patterns: ToolPatterns | None = None
    notices: ChatNotices = field(default_factory=ChatNotices)


@dataclass(frozen=True, slots=True)
class TurnScope:
    brief: TurnBrief
    limits: TurnLimits
    live: LiveTurn
    prompt: TurnPrompt
    selection: ToolSelection
    local_tools: Mapping[str, LocalTool] = field(default_factory=dict[str, LocalTool])
    workspace: ThreadWorkspace | None = None
    direct: DirectCall | None = None
    """What a template makes of the message; then no model is asked."""
