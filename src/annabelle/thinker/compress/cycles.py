"""What one turn has thought so far, and the figures of it (CMP-06)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic_ai.messages import ModelMessage, ModelRequest

from annabelle.core.tools import JsonObject

_KEPT_TURNS = 64
_TOTALS = (
    "turns",
    "succeeded",
    "cycles",
    "shortened",
    "tokens_before",
    "tokens_after",
    "overhead_tokens",
    "calls",
    "recoveries",
    "context_losses",
)


@dataclass(slots=True)
class TurnThoughts:
    """The state of one turn: what was sent last, and what came of it."""

    goal: ModelRequest
    seen: int = 0
    """So many messages were there at the last cycle."""
    sent: Sequence[ModelMessage] | None = None
    """What went out instead at the last cycle; None while everything went out as it was."""
    worked: int = 0
    """So many messages were there when the conversation was last shortened, and this came out."""
    shortened: list[ModelMessage] = field(default_factory=list[ModelMessage])
    size: int = 0
    workspace: str = ""
    said: str = ""
    """What else the model was shown at the last cycle."""
    cycles: int = 0
    shortened_cycles: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    overhead: int = 0
    calls: int = 0
    milliseconds: float = 0.0
    recoveries: int = 0
    losses: int = 0

    def add(self, before: int, after: int, overhead: int, milliseconds: float, *, called: bool, failed: bool) -> None:
        """Count one cycle."""
        self.cycles += 1
        self.shortened_cycles += after < before
        self.tokens_before += before
        self.tokens_after += after
        self.overhead += overhead
        self.milliseconds += milliseconds
        self.calls += called
        self.recoveries += failed

    def summary(self, *, success: bool) -> JsonObject:
        return {
            "success": success,
            "cycles": self.cycles,
            "shortened": self.shortened_cycles,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "ratio": ratio(self.tokens_before, self.tokens_after),
            "overhead_tokens": self.overhead,
            "calls": self.calls,
            "thinking_ms": round(self.milliseconds, 1),
            "recoveries": self.recoveries,
            "context_losses": self.losses,
        }


class Turns:
    """The turns under way, by message id, and the totals of those that are over."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, TurnThoughts] = OrderedDict()
        self._totals: dict[str, int] = dict.fromkeys(_TOTALS, 0)

    def of(self, message_id: str, goal: ModelRequest) -> TurnThoughts:
        """A turn that begins anew, as after a crash, begins with nothing thought."""
        known = self._open.get(message_id)
        if known is None or known.goal is not goal:
            known = self._open[message_id] = TurnThoughts(goal)
            if len(self._open) > _KEPT_TURNS:
                self._open.popitem(last=False)
        return known

    def over(self, message_id: str, *, success: bool) -> JsonObject:
        """The figures of a turn that is over; nothing for one that never thought."""
        turn = self._open.pop(message_id, None)
        if turn is None:
            return {}
        summary = turn.summary(success=success)
        self._totals["turns"] += 1
        self._totals["succeeded"] += success
        for name, value in summary.items():
            if name in self._totals and isinstance(value, int):
                self._totals[name] += value
        return summary

    def status(self) -> JsonObject:
        totals = self._totals
        return {**totals, "ratio": ratio(totals["tokens_before"], totals["tokens_after"])}


def ratio(before: int, after: int) -> float:
    """What is left, as a share of what was there."""
    return round(after / before, 4) if before else 1.0
