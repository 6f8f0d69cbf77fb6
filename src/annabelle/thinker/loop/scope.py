"""What one turn is: its brief, its limits, and its live side."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.core.contract import TurnBrief, TurnLimits
from annabelle.thinker.context.prompt import Prompt
from annabelle.thinker.live import LiveTurn


@dataclass(frozen=True, slots=True)
class TurnScope:
    brief: TurnBrief
    limits: TurnLimits
    live: LiveTurn
    prompt: Prompt
