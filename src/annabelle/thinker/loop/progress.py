"""How far a turn has come. Everything in it follows from recorded steps, so a replay arrives at the same place."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic_ai.messages import ModelMessage

from annabelle.core.contract import Usage
from annabelle.thinker.loop.deeds import Deed
from annabelle.thinker.loop.repetition import Repetition


@dataclass(slots=True)
class Progress:
    """The state of one run of the loop."""

    messages: list[ModelMessage] = field(default_factory=list[ModelMessage])
    step: int = 0
    tool_calls: int = 0
    mistakes: int = 0
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    earlier: Usage = field(default_factory=Usage)
    """What the turn had used before it was parked; it was accounted for then."""
    tools_used: list[str] = field(default_factory=list[str])
    deeds: list[Deed] = field(default_factory=list[Deed])
    """Every call that was made, with how it ended: what an answer may claim."""
    second_chance: bool = False
    """Whether an answer of this turn was already sent back; there is one such chance in a turn."""
    unknown_outcomes: list[str] = field(default_factory=list[str])
    last_text: str = ""
    last_result: str = ""
    repetition: Repetition = field(default_factory=Repetition)

    @property
    def spent(self) -> Usage:
        """Everything the turn has used, also before it was parked."""
        return self.earlier + self.usage

    def used(self, tool: str) -> None:
        if tool not in self.tools_used:
            self.tools_used.append(tool)
